package agentlogin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// later lets the pause after an attempt be over.
func later(t *testing.T, home string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(home, "locks/*", attemptName))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		var a attempt
		data, err := os.ReadFile(name)
		if err != nil || json.Unmarshal(data, &a) != nil {
			t.Fatalf("%s: %v", data, err)
		}
		a.At -= pause.Milliseconds()
		if data, err = json.Marshal(a); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// justNow writes that the last attempt was just now, so that a slow machine fails no test.
func justNow(t *testing.T, home string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(home, "locks/*", attemptName))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	var a attempt
	data, err := os.ReadFile(files[0])
	if err != nil || json.Unmarshal(data, &a) != nil {
		t.Fatalf("%s: %v", data, err)
	}
	a.At = time.Now().UnixMilli()
	if data, err = json.Marshal(a); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAttemptsArePacedAmongBoxesWhetherTheySucceedOrNot(t *testing.T) {
	for name, change := range map[string]func(*server){
		"refused":     func(s *server) { s.turn = 7 },
		"short-lived": func(s *server) { s.lifetime = 60 },
	} {
		t.Run(name, func(t *testing.T) {
			s, home := newServer(t), t.TempDir()
			s.write(t, home, 0, -time.Minute)
			boxes := []*box{s.box(t, home), s.box(t, home)}
			change(s)
			status, _ := boxes[0].renew(t.Context())
			for i := range 20 {
				justNow(t, home)
				if again, fields := boxes[i%2].renew(t.Context()); again != status {
					t.Fatalf("%d %v, first %d", again, fields, status)
				}
			}
			if s.asked() != 1 {
				t.Errorf("asked %d times", s.asked())
			}
			later(t, home)
			boxes[1].renew(t.Context())
			if s.asked() != 2 {
				t.Errorf("after the pause: asked %d times", s.asked())
			}
			boxes[0].sawNothing(t)
		})
	}
}

func TestANewLoginOutsideEndsThePauseOfARefusedOne(t *testing.T) {
	s, home := newServer(t), t.TempDir()
	s.write(t, home, 0, -time.Minute)
	b := s.box(t, home)
	s.turn = 7
	if status, _ := b.renew(t.Context()); status != 400 {
		t.Fatal(status)
	}
	s.write(t, home, 7, -time.Minute)
	if status, fields := b.renew(t.Context()); status != 200 {
		t.Errorf("%d %v", status, fields)
	}
}

func TestTheBoxChoosesNoClient(t *testing.T) {
	s, home := newServer(t), t.TempDir()
	s.write(t, home, 0, -time.Minute)
	section := s.section()
	section.Client, section.Secrets = "oauth.plan", []string{digest("public")} // the host's file says "max" there
	for _, row := range []struct {
		client, secret string
		ok             bool
	}{
		{"attackers-client", "", false},
		{"", "", false},
		{"the-client", "attackers-secret", false},
		{"the-client", "public", true},
		{"max", "", true},
	} {
		later(t, home)
		s.write(t, home, s.turn, -time.Minute)
		b := s.boxOf(t, home, section)
		was := s.asked()
		b.post(t.Context(), "application/json", fmt.Sprintf(`{"grant_type":"refresh_token","refresh_token":%q,"client_id":%q,"client_secret":%q}`, b.refresh, row.client, row.secret))
		if asked := s.asked() > was; asked != row.ok {
			t.Errorf("%+v: asked %v", row, asked)
		}
	}
}
