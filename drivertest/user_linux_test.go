package drivertest

import "testing"

func TestWhatFailedIsToldWithItsWords(t *testing.T) {
	const out = `=== RUN   TestA
=== RUN   TestA/one
    a.go:1: from one
=== RUN   TestA/two
    a.go:2: from two
=== NAME  TestA/one
    a.go:3: one again
--- FAIL: TestA (0.10s)
    --- FAIL: TestA/one (0.05s)
    --- PASS: TestA/two (0.05s)
FAIL
`
	const want = `failed: TestA
failed: TestA/one
    a.go:1: from one
    a.go:3: one again
`
	if got := whatFailed(out); got != want {
		t.Fatalf("got:\n%s\nwant:\n%s", got, want)
	}
}
