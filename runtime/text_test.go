package emq_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	emq "github.com/echomq/emq/runtime"
)

// A Ref in a struct is a part of it, and its text does not stand for the whole.
func TestWhatHoldsARefIsWrittenWhole(t *testing.T) {
	t.Parallel()
	ref := emq.Ref{Queue: "mail", ID: "JOB0KHTOWnGLuA"}
	for _, v := range []any{
		emq.Receipt{Ref: ref, Status: emq.Conflict, Holder: "marked"},
		emq.Info{Ref: ref, Kind: "marked"},
		emq.JobDetail{Ref: ref, Kind: "marked"},
		emq.JobEvent{Ref: ref, Kind: "marked"},
	} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Errorf("%T: %v", v, err)
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
		for how, s := range map[string]string{"JSON": string(text), "%v": fmt.Sprintf("%v", v), "%+v": fmt.Sprintf("%+v", v), "slog": log.String()} {
			if !strings.Contains(s, "marked") || !strings.Contains(s, "JOB0KHTOWnGLuA") {
				t.Errorf("%T in %s is %s", v, how, s)
			}
		}
		var back map[string]any
		if err := json.Unmarshal(text, &back); err != nil || back["ID"] != "JOB0KHTOWnGLuA" {
			t.Errorf("%T: %s, %v", v, text, err)
		}
	}
}
