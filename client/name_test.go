package client_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
)

func TestANameOfTheServersThatIsNoneIsRefused(t *testing.T) {
	for _, bad := range []string{"", "../../v1/x", "a/b", "a?b", "A", "\x1b[2J", "-a", strings.Repeat("a", 64)} {
		l, address, err := onTCP("")
		if err != nil {
			t.Fatal(err)
		}
		name := "good"
		web := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			body := fmt.Sprintf(`{"id":%q}`, name)
			if r.Method == http.MethodGet {
				body = fmt.Sprintf(`{"sandboxes":[{"id":%q}]}`, name)
			}
			_, _ = io.WriteString(w, strings.ReplaceAll(body, `\x`, `\u00`))
		})}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = web.Serve(l) // always http.ErrServerClosed
		}()
		t.Cleanup(func() {
			_ = web.Close()
			<-ended
		})
		d := connect(t, client.Options{Address: address})
		sb, err := d.Create(bounded(t), paddock.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		name = bad
		if _, err := d.Create(bounded(t), paddock.Spec{}); paddock.KindOf(err) != paddock.Internal || err == nil {
			t.Errorf("create, %q: %v", bad, err)
		}
		if _, err := d.List(bounded(t)); paddock.KindOf(err) != paddock.Internal || err == nil {
			t.Errorf("list, %q: %v", bad, err)
		}
		if _, err := sb.Snapshot(bounded(t), paddock.SnapshotOptions{}); paddock.KindOf(err) != paddock.Internal || err == nil {
			t.Errorf("snapshot, %q: %v", bad, err)
		}
	}
}
