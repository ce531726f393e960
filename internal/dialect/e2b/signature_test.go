package e2b

import (
	"net/url"
	"testing"
)

// The values are those that E2B's own tests and the formula give.
func TestASignatureIsTheirs(t *testing.T) {
	const token = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0"
	for user, want := range map[string]string{
		"user": "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E",
		"":     "v1_SnvZASdG5vD8p9rpaldX3434NfwgRVsYsvzCBL6oZbc",
		"root": "v1_L6BLpSFZ4erpM7k1y1Z8n/iTxhp2HuTk3ZVsMQd1Pw8",
	} {
		q := url.Values{"path": {"hello.txt"}, "username": {user}}
		if got := Signature(token, "GET", q); got != want {
			t.Errorf("%q: %s", user, got)
		}
		q.Set("signature", want)
		if !Signed(token, "GET", q) || Signed(token, "POST", q) || Signed("other", "GET", q) {
			t.Errorf("%q: it is not told whose it is, and for what", user)
		}
	}
	none := url.Values{}
	none.Set("signature", Signature("", "GET", none))
	if Signed("", "GET", none) || Signed(token, "GET", url.Values{}) {
		t.Error("no token, or no signature, counts")
	}
}
