// Command emqgen turns annotated structs into typed job producers and handlers. See docs/generator.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/echomq/emq/cmd/emqgen/internal/generate"
)

const usage = `emqgen writes emq_gen.go, the typed producer and handler of each package with jobs, and beside it
emq.lock.json, by which the next run knows what jobs that wait look like.

Usage:

	emqgen [flags] [packages]

A job is a struct with a directive; its queue is declared beside it:

	//emq:queue emails timeout=30s attempts=5 backoff=exponential(1s,10m)

	// SendWelcome greets a new user.
	//
	//emq:job queue=emails
	type SendWelcome struct {
		Email string ` + "`json:\"email\"`" + `
	}

Flags may stand before or behind the packages, which are named as for go build; without any, it
is the one in this directory. One call for the whole module, emqgen ./..., is the fastest, and finds
kinds that two packages both have.
Nothing is written if there is an error. A package that does not load or parse is looked at no
further; every error of the declarations of all others is reported in the same run. When there is
none, the lock is compared, and all that it refuses is reported together.

Flags:

	-check   write nothing; print what would change as a diff
	-list    write nothing; print every job with its effective settings
	-json    with -list: as JSON
	-accept KIND[,KIND]
	         take a change of these kinds that the lock refuses, because no job of them waits

Exit status: 0 all is well, 1 -check found a file that is out of date, 2 an error.

The page docs/generator.md has the grammar of the directives and all errors with their remedies.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, "emqgen:", err)
		os.Exit(generate.Failed)
	}
	call := generate.Call{Dir: dir, Env: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr}
	code := run(ctx, call, os.Args[1:])
	stop()
	os.Exit(code)
}

// run is the command; the call holds what it takes from its process.
func run(ctx context.Context, call generate.Call, args []string) int {
	flags := flag.NewFlagSet("emqgen", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	check := flags.Bool("check", false, "")
	list := flags.Bool("list", false, "")
	asJSON := flags.Bool("json", false, "")
	var accept, patterns []string
	flags.Func("accept", "", func(kinds string) error {
		for kind := range strings.SplitSeq(kinds, ",") {
			if strings.TrimSpace(kind) == "" {
				return fmt.Errorf("a kind is missing in it: write -accept KIND[,KIND]")
			}
			accept = append(accept, strings.TrimSpace(kind))
		}
		return nil
	})
	err := flags.Parse(args)
	for err == nil && flags.NArg() > 0 { // flags may also stand behind packages
		patterns = append(patterns, flags.Arg(0))
		err = flags.Parse(flags.Args()[1:])
	}
	switch {
	case err == flag.ErrHelp:
		if _, err := io.WriteString(call.Stdout, usage); err != nil {
			return generate.Failed
		}
		return generate.Fine
	case err == nil && *check && *list:
		err = fmt.Errorf("-check and -list exclude each other")
	case err == nil && len(accept) > 0 && (*check || *list):
		err = fmt.Errorf("-accept is for a call that writes")
	case err == nil && *asJSON && !*list:
		err = fmt.Errorf("-json goes with -list")
	}
	if err != nil {
		fmt.Fprintf(call.Stderr, "emqgen: %v\nemqgen -h explains the flags\n", err)
		return generate.Failed
	}
	call.Patterns, call.Accept = patterns, accept
	if len(call.Patterns) == 0 {
		call.Patterns = []string{"."}
	}
	switch {
	case *check:
		call.Mode = generate.Check
	case *asJSON:
		call.Mode = generate.ListJSON
	case *list:
		call.Mode = generate.List
	}
	return generate.Run(ctx, call)
}
