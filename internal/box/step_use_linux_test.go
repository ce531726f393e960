package box

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/step"
)

func TestWhatAStepUsedIsInItsRecordAndWhatWasNotMeasuredIsNot(t *testing.T) {
	exit := func(peak int64) *paddock.Exit { return &paddock.Exit{Usage: paddock.Usage{MemoryPeak: peak}} }
	for name, row := range map[string]struct {
		before, after reading
		exit          *paddock.Exit
		want          string
	}{
		"everything":                   {reading{time.Second, &paddock.Traffic{In: 1, Out: 2}}, reading{3 * time.Second, &paddock.Traffic{In: 11, Out: 2}}, exit(7), `{"cpu":2000000000,"memory_peak":7,"traffic":{"in":10,"out":0}}`},
		"nothing was used":             {reading{0, nil}, reading{0, nil}, nil, `{"cpu":0}`},
		"no control group, no gateway": {reading{-1, nil}, reading{-1, nil}, exit(-1), `null`},
		"not measured at its end":      {reading{time.Second, &paddock.Traffic{}}, reading{-1, nil}, nil, `null`},
		"counted only at its end":      {reading{-1, nil}, reading{time.Second, &paddock.Traffic{}}, exit(0), `null`},
		"a counter that went back":     {reading{2 * time.Second, &paddock.Traffic{Out: 9}}, reading{time.Second, &paddock.Traffic{Out: 1}}, nil, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			s := recordedDir(t, paddock.UndoOn, nil)
			next := row.before
			s.reading = func() reading { return next }
			end, err := s.command(t.Context(), runStep, []string{"true"})
			if err != nil {
				t.Fatal(err)
			}
			next = row.after
			end(t.Context(), row.exit)
			list, err := s.journal.List(t.Context(), step.Filter{Lean: true})
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			if got, err := json.Marshal(list[0].Use); err != nil || string(got) != row.want {
				t.Errorf("%s, %v, want %s", got, err, row.want)
			}
		})
	}
}
