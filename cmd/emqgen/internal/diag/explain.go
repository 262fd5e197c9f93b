package diag

// Explanation says what a code means and what to do, for the docs.
type Explanation struct {
	Code          Code
	Title, Remedy string
}

// Explanations lists all codes in their order.
func Explanations() []Explanation {
	return []Explanation{
		{Load, "packages cannot be loaded", "The text is the go command's own in most cases. Name packages as for `go build`; a file is no package."},
		{Syntax, "a file does not parse", "Mend the file. emqgen never writes from a broken parse."},
		{Unresolved, "a type in a payload is not known", "Mend the type. Errors outside payloads do not matter here: handlers may use names that are yet to be generated."},
		{NotOurs, "a file in the place of the output is not ours", "Only a regular file that begins with the header of emqgen, is empty, or was cut within the header is overwritten or removed. Move the other's contents elsewhere; a directory, a link, a pipe or a device is not touched either."},
		{Write, "a file cannot be written", "Look at the directory's rights and at the disk. The old file is as it was: a new one is written beside it and renamed."},
		{Constraints, "annotated files differ in their build constraints", "One generated file serves the package and carries the constraint of its sources, so they must share one. Move the annotated types together, or into packages of their own."},
		{TestFile, "a directive in a test file", "Move the type to a file that is not a test."},
		{NotBuilt, "a file with directives is not built here (a warning)", "Run emqgen with the `GOOS`, `GOARCH`, `CGO_ENABLED` or `GOFLAGS=-tags=…` that build it. Patterns with `...` find such files also in directories of which nothing is built here."},
		{Internal, "an error of emqgen itself", "Please report it."},

		{NearMiss, "a comment that is almost a directive", "A directive begins with `//emq:` and a lower-case name, without a blank. Anything else is prose to Go, and has no effect. One letter of `emq` that is wrong, or a colon left out, is seen before the name of a directive (but `//rmq:`, `//amq:` and `//zmq:` are other tools). Prose that speaks of emq is no fault, and neither is a directive that was commented out with a further `//`."},
		{UnknownDirective, "an unknown directive", "See the table of directives."},
		{UnknownOption, "an unknown option, or a word that is none", "See the table of options. They are `key=value` with blanks between them: no commas there, and no blanks around the `=`."},
		{OptionTwice, "an option, or an item of its list, given twice", "Keep one."},
		{Malformed, "arguments that cannot be read", "Options are `key=value` without blanks around the `=`; a value with blanks stands in quotes. There is no room for a comment at the end."},
		{Misplaced, "a directive where it has no effect", "`//emq:job`, `//emq:was` and `//emq:cron` belong into the doc comment of a struct type, with no blank line between. `//emq:queue`, `//emq:package` and `//emq:retired` stand by themselves at the top of a file."},
		{DirectiveTwice, "a directive given twice", "Put its options on one line. A job has one declared schedule: further ones are added at run time with `AddCron`, or belong to a job of their own. A struct is one old version of one job."},
		{Missing, "a directive without what it needs", "The message shows the whole form."},

		{BadDuration, "a duration that is none", "Write a number and a unit, in whole milliseconds: `500ms`, `30s`, `10m`, `1h30m`. There are no days: `24h`."},
		{BadNumber, "a number that is none, or out of range", "The message says the range."},
		{BadBackoff, "a backoff that is none", "`fixed(30s)` or `exponential(1s,10m)`, either with `jitter` as its last word: `fixed(30s,jitter)`."},
		{BadName, "a name that breaks the rules of the wire", "Queues: 1 to 128 of `A-Z a-z 0-9 . _ -`. Kinds: 1 to 128 of `a-z 0-9 . _ : / -`."},
		{BadWord, "a word that is none of the few", "The message says which there are."},
		{BadCron, "a cron spec that does not parse, or never comes", "Five fields in quotes (minute, hour, day of month, month, day of week), or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. Its months must have its days: there is no 30 February, and no 31 April."},
		{BadZone, "a time zone that does not exist", "A name of the IANA database, such as `Europe/Berlin`."},
		{BadIdent, "a name that cannot stand in Go", "Give the queue a Go name: `name=TwoFactor`."},
		{QueueTwice, "a queue declared twice in one package", "Keep one. Another package may declare the same queue for its own jobs."},
		{QueueEmpty, "a queue without jobs", "Remove it, or send a job there."},

		{UnknownQueue, "a job on a queue that its package does not declare", "Declare the queue in the package, or mend its name."},
		{NoQueue, "a job without a queue", "With one queue in the package it need not be named; with more, each job names its own."},
		{NoTimeout, "a job without a timeout", "Say it on the job or on its queue. There is no silent default: it is the longest that a run may take."},
		{NoAttempts, "a job without attempts", "Say it on the job or on its queue: how often it runs in all before it is a dead letter."},
		{KindTwice, "two jobs with one kind on one queue", "Give one of them another `kind=`. A worker could not tell them apart; packages of one call are compared with each other."},
		{NotStruct, "a job that is not a struct", "Payloads are structs, because a struct can grow fields without harm to jobs that wait."},
		{Generic, "a job that is generic", "Annotate a struct without parameters that has the instance as a field."},
		{Unexported, "a job that is not exported", "Begin its name with a capital letter: a handler of another package could not have its method."},
		{OnAlias, "a directive on an alias", "Annotate the type that it stands for."},
		{EmbedsJob, "a job that embeds another job", "Embed a plain struct that both have, or make it a field with a name. The outer job would take over the inner one's result and log form."},

		{CannotEncode, "a field that cannot be encoded", "Leave it out of the payload (`json:\"-\" emq:\"-\"`), or give its type `MarshalJSON` and `UnmarshalJSON`. What is wrong inside a type of another module is one error of the field, with a count."},
		{NoWayBack, "a field that encodes, but does not decode", "Use a concrete type, or declare both directions."},
		{SameJSONName, "two fields with one JSON name", "Give each its own name. encoding/json drops both, or hides one, without an error."},
		{Swallowed, "an embedded type that encodes itself", "Make it a field with a name. Its `MarshalJSON` would become that of the whole payload, and every other field would be lost. If there is no other field, embed it by value: through a pointer or an interface encoding/json would call its methods on nil, and that is a panic."},
		{FieldLost, "an unexported field", "Export it, or mark it as left out on purpose: `emq:\"-\"`."},
		{DashUnmarked, "a field that is left out of JSON", "If that is meant, say so: `json:\"-\" emq:\"-\"`."},
		{AnyValue, "a field of type any", "It does not come back as it was. Use a struct, or `json.RawMessage` and decode it in the handler."},
		{TagSyntax, "a struct tag that is not read", "`key:\"value\"` pairs with one blank between them."},
		{JSONOption, "an option of a json tag that has no effect, or spoils the field", "`omitempty`, `omitzero`, or `string` on numbers, strings and bools of types that have no `MarshalJSON` or `MarshalText` of their own: encoding/json cannot read back what these write under `string`. `omitempty` on a struct (`time.Time` is one) or an array is a warning, because nothing is lost: the field is always written. `omitzero` leaves it out."},
		{Lock, "a lock held by value", "Use a pointer, and leave it out of the payload (`json:\"-\" emq:\"-\"`). The types of sync/atomic are such locks, too: a payload has plain values. A type that encodes itself needs the pointer only."},
		{EmqTag, "an unknown word in an emq tag", "`lane`, `unique`, `unique,text`, `redact`, or `-` alone."},
		{NoText, "a key or lane of a type without one text for one value", "Text, whole numbers, bools and arrays of bytes have one. Others need `emq:\"unique,text\"`, by which you say that their `MarshalText` gives equal values equal texts."},
		{TagTwice, "two lanes, or a key or a word twice in one tag", "A job goes into one lane. Of a key that a tag has twice only the first is read: put the words into one."},
		{ReservedName, "a field or method with the name of a generated one", "Rename it. `EmqSpec`, `EmqResult` and `LogValue` are generated."},
		{TagIgnored, "an emq tag that has no effect", "Lane and unique fields are the payload's own, or those of a struct that it embeds: move the value there. What a type with its own `MarshalJSON` or `MarshalText` writes is not looked into, so a redact tag stands on the field that holds it. A tag on a struct that no job of the run is made of is a warning: annotate the struct, remove the tag, or run `emqgen ./...`, which sees the other packages too."},
		{PointerMethod, "MarshalJSON or MarshalText on the pointer only", "encoding/json does not call it on a value. Declare it on the value, or make the field a pointer."},
		{BadSignature, "a method with another signature than the one that is called", "encoding/json ignores it without an error. The message shows the right one; a method for something else needs another name."},

		{ResultNoRetain, "a result that is not retained", "Add `retain=`: for so long the result can be waited for."},
		{BadResult, "a result of a type that does not do", "It must exist, be exported, have its type arguments if it is generic, and encode and decode as payloads do."},
		{UniqueNoField, "unique= without a tagged field", "Tag the fields that make two jobs the same. Without fields at all, `unique=` means one job at a time."},
		{CronRequired, "a cron job with a required field", "Cron enqueues the zero payload, so each field needs `omitempty`, `omitzero` or a pointer."},
		{WasUnknown, "an old version of no job", "Mend the name, and keep the old struct beside the job's."},
		{BadVersion, "a version that does not fit, or whose old struct is missing", "Keep a struct for each version that may wait, each once, each older than the job's own. The message prints what to paste."},
		{BadFrom, "from= with the job's own queue", "It names the queue that the job has left."},
		{RetiredAlive, "a retired kind that a job still has, or (a warning) that is not retired any more", "Remove one of the two. If the job has moved to another package, remove the directive and name both packages in one call: the lock compares what waits with the job there. Keep the directive until nothing is left of the kind: without it what is left finds no handler, or that of a job which takes the kind. The lock remembers it, so that the job is warned of in a later run too."},

		{ResultChanged, "a result is not what it was", "Results that are kept, and callers of an older build that wait for one, have the old form. Add fields beside the old ones instead; or, when no result of the kind is kept and no job of it waits, run with `-accept KIND`. A field that is new is a warning."},

		{UniqueOverLane, "a unique job in a lane, on a queue with shards", "Its lane says in which shard it is, and what excludes each other must be in one: make the lane a part of the unique key, `emq:\"lane,unique\"`. See [shards.md](shards.md)."},

		{LockFile, "the schema lock cannot be read, or (a warning) is gone", "Restore it from version control. After a merge take either side's lock whole, solve the conflict in the sources, and run emqgen: it writes what the merged sources say."},
		{FieldGone, "a field that waiting jobs carry is gone", "Keep the name on the wire (`json:\"old_name\"`); or raise `version=` and keep the old struct with `//emq:was`; or, when no job of the kind waits, run with `-accept KIND`."},
		{FieldRetyped, "a field has another type", "As for a field that is gone: `json:` keeps a name, `version=` with `//emq:was` a form, and `-accept KIND` says that no job waits."},
		{FieldRequired, "an optional field is required, or (a warning) a field is new", "Keep `omitempty` or `omitzero`; or raise the version. A new field is empty in jobs that wait: the handler must cope."},
		{KindGone, "a kind is gone", "Give a renamed type its old name on the wire with `kind=`; name both packages in one call, such as `emqgen ./...`, if the job has moved from one to the other; or declare the kind retired, on each queue and under each alias that it was served by; or run with `-accept KIND`, when no job of it waits."},
		{QueueMoved, "a job has left a queue", "Add `from=OLDQUEUE`, or keep it: workers serve it on both. When the old queue is empty, remove it and run with `-accept KIND`."},
		{AliasGone, "an alias is gone", "Keep it, or declare it retired; or run with `-accept KIND`, when no job with it waits. Another job may answer to it instead, by an alias or as its kind, if it takes what waits: the payloads are compared, and a warning says where they go now."},
		{VersionBack, "a version goes back", "Versions only rise while jobs wait: a worker takes one of a higher version for newer than itself. When no job of the kind waits, `-accept KIND` takes a lower one too."},
		{WasDiffers, "an old struct is not what it was", "Keep the struct as it was; the message prints what the lock has."},
		{KeyChanged, "lane or unique fields have changed (a warning)", "Jobs with old keys and new ones do not exclude each other while both wait."},

		{NameTaken, "a generated name is taken", "Rename yours, or put a word before the generated ones: `//emq:package prefix=Job`, or `name=` for those of a queue."},
		{NamesMeet, "two generated names meet", "Give a queue another Go name: `name=Something`."},
	}
}
