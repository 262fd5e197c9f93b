package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// line is one thing that happened in one process, as that process wrote it down.
type line struct {
	T     int64  `json:"t"` // ns of CLOCK_MONOTONIC, the same for all processes of a machine
	PID   int    `json:"p"`
	What  string `json:"e"`
	ID    string `json:"id,omitempty"`
	Queue string `json:"q,omitempty"`
	N     int    `json:"n"`
	Try   int    `json:"a,omitempty"`
	Run   int64  `json:"r,omitempty"` // of the process
	Text  string `json:"x,omitempty"`
	Count int    `json:"c,omitempty"`
	Sent  int64  `json:"s,omitempty"` // when the enqueue began
}

// What a line tells.
const (
	wasAcked   = "ack"     // an enqueue was acknowledged
	wasRefused = "refused" // an enqueue was refused
	isUnknown  = "unknown" // an enqueue's fate is not known
	begins     = "begin"   // a handler
	wasCut     = "cut"     // its context ended; Text is the cause
	ends       = "end"     // it returned; Text is ok, failed or handed
	observed   = "event"   // of the worker's observer; Text is its name
	sampled    = "sample"  // Count goroutines
	isUp       = "up"      // the process works
	isDone     = "done"    // the process has done its part
)

// logbook is the append-only file of a drill, from one process.
type logbook struct{ file *os.File }

func openLogbook(name string) (logbook, error) {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	return logbook{f}, err
}

// write appends a line in one write, so that lines of several processes never mix. A process that
// cannot log must not go on: its runs would be missing.
func (l logbook) write(entry line) {
	entry.T, entry.PID = monotonic(), os.Getpid()
	text, err := json.Marshal(entry)
	if err == nil {
		_, err = l.file.Write(append(text, '\n'))
	}
	if err != nil {
		panic(err)
	}
}

func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

// reader reads a log that grows.
type reader struct {
	name  string
	at    int64
	lines []line
}

// read answers all lines so far.
func (r *reader) read() ([]line, error) {
	f, err := os.Open(r.name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	text := make([]byte, info.Size()-r.at)
	if _, err := f.ReadAt(text, r.at); err != nil {
		return nil, err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	for l := range bytes.Lines(text) {
		var entry line
		if err := json.Unmarshal(l, &entry); err != nil {
			return nil, fmt.Errorf("log: %w in %q", err, l)
		}
		r.lines = append(r.lines, entry)
	}
	r.at += int64(len(text))
	return r.lines, nil
}
