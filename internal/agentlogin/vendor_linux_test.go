package agentlogin

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// vendors are the files of agents in the shape that their programs write, and the section for each. ENDPOINT is the
// server's; ACCESS, REFRESH and ID are its tokens.
func vendors() map[string]struct{ section, file string } {
	return map[string]struct{ section, file string }{
		"claude": {`{name: Claude subscription, file: ~/.claude/.credentials.json, access: claudeAiOauth.accessToken, refresh: claudeAiOauth.refreshToken,
			expires: {at: claudeAiOauth.expiresAt, unit: ms}, scopes: claudeAiOauth.scopes, keep: [claudeAiOauth.subscriptionType, claudeAiOauth.rateLimitTier, claudeAiOauth.clientId],
			use: [{host: api.anthropic.com, paths: [/v1/messages, /api/oauth/profile]}], endpoints: [ENDPOINT], clients: [c], secrets: [efa1f375d76194fa51a3556a97e641e61685f914d446979da50a551a4333ffd7], login: "claude, then /login"}`,
			`{"claudeAiOauth":{"accessToken":"ACCESS","refreshToken":"REFRESH","expiresAt":1700000000000,"scopes":["user:inference","user:profile"],"subscriptionType":"max","rateLimitTier":null},"mcpOAuth":{"x":{"accessToken":"of-another-server"}}}`},
		"codex": {`{name: ChatGPT login, file: ~/.codex/auth.json, access: tokens.access_token, refresh: tokens.refresh_token, id: tokens.id_token, refreshed: last_refresh,
			keep: [tokens.account_id, auth_mode], use: [{host: chatgpt.com, paths: [/backend-api/codex/responses]}], endpoints: [ENDPOINT], clients: [c], secrets: [efa1f375d76194fa51a3556a97e641e61685f914d446979da50a551a4333ffd7], login: codex login}`,
			"{\n  \"auth_mode\": \"chatgpt\",\n  \"OPENAI_API_KEY\": \"of-another-server\",\n  \"tokens\": {\n    \"id_token\": \"ID\",\n    \"access_token\": \"ACCESS\",\n    \"refresh_token\": \"REFRESH\",\n    \"account_id\": \"an-account\"\n  },\n  \"last_refresh\": \"2026-01-01T00:00:00Z\"\n}"},
		"gemini": {`{name: Google login, file: ~/.gemini/oauth_creds.json, access: access_token, refresh: refresh_token, id: id_token, expires: {at: expiry_date, unit: ms}, scopes: scope, keep: [token_type],
			use: [{host: cloudcode-pa.googleapis.com, paths: ["/v1internal:generateContent"]}], endpoints: [ENDPOINT], clients: [c], secrets: [efa1f375d76194fa51a3556a97e641e61685f914d446979da50a551a4333ffd7], login: gemini}`,
			`{"access_token":"ACCESS","refresh_token":"REFRESH","scope":"a b","token_type":"Bearer","id_token":"ID","expiry_date":1700000000000}`},
		"opencode": {`{name: OpenCode's ChatGPT login, file: ~/.local/share/opencode/auth.json, access: openai.access, refresh: openai.refresh, expires: {at: openai.expires, unit: ms}, keep: [openai.type, openai.accountId],
			use: [{host: chatgpt.com, paths: [/backend-api/codex/responses]}], endpoints: [ENDPOINT], clients: [c], secrets: [efa1f375d76194fa51a3556a97e641e61685f914d446979da50a551a4333ffd7], login: opencode auth login}`,
			`{"openai":{"type":"oauth","access":"ACCESS","refresh":"REFRESH","expires":1700000000000,"accountId":"an-account"},"anthropic":{"type":"api","key":"of-another-server"}}`},
	}
}

func TestTheFilesOfVendors(t *testing.T) {
	for name, v := range vendors() {
		t.Run(name, func(t *testing.T) {
			s, home := newServer(t), t.TempDir()
			var section Section
			d := yaml.NewDecoder(strings.NewReader(strings.ReplaceAll(strings.ReplaceAll(v.section, "\t", " "), "ENDPOINT", s.URL+"/oauth/token")))
			d.KnownFields(true)
			if err := d.Decode(&section); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(home, strings.TrimPrefix(section.File, "~/"))
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			content := strings.NewReplacer("ACCESS", s.real("access", 0), "REFRESH", s.real("refresh", 0), "ID", s.real("id", 0)).Replace(v.file)
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			l, err := Prepare(Options{Sections: []Section{section}, Home: home, Lock: filepath.Join(home, "locks"), Client: s.Client()})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			files, err := l.Files()
			if err != nil || len(files) != 1 {
				t.Fatalf("%v, %v", files, err)
			}
			b := &box{Login: l, s: s, seen: []string{string(files[0].Content)}}
			given, err := parseDocument(files[0].Content)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range []string{section.Access, section.Refresh, section.ID} {
				if at != "" && given.text(at) == "" {
					t.Errorf("the box's file has nothing at %s: %s", at, given.raw)
				}
			}
			asked := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {given.text(section.Refresh)}, "client_id": {"c"}, "client_secret": {"public"}}
			if status, fields := b.post(t.Context(), "application/x-www-form-urlencoded", asked.Encode()); status != 200 || fields["expires_in"] == nil {
				t.Fatalf("%d %v", status, fields)
			}
			b.sawNothing(t)
			after, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s.sameBut(t, section, []byte(content), after)
		})
	}
}

// sameBut fails if a refresh changed anything in the host's file but what it is about.
func (s *server) sameBut(t *testing.T, section Section, before, after []byte) {
	t.Helper()
	d, err := parseDocument(after)
	if err != nil {
		t.Fatal(err)
	}
	if d.text(section.Access) != s.real("access", 1) || d.text(section.Refresh) != s.real("refresh", 1) || section.ID != "" && d.text(section.ID) != s.real("id", 1) {
		t.Errorf("the host has %s", after)
	}
	if at := section.Refreshed; at != "" {
		if when, err := time.Parse(time.RFC3339Nano, d.text(at)); err != nil || time.Since(when) > time.Hour {
			t.Errorf("%s is %q, %v", at, d.text(at), err)
		}
	}
	if at := section.Expires.At; at != "" {
		if tok, ok := d.tokens(section); !ok || time.Until(tok.expires) < 50*time.Minute {
			t.Errorf("%s is %v", at, tok.expires)
		}
	}
	was, err := parseDocument(before)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{section.Access, section.Refresh, section.ID, section.Refreshed, section.Expires.At} {
		for _, of := range []*document{&was, &d} {
			if at != "" {
				if err := of.set(at, "-"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	var one, other any
	if json.Unmarshal(was.raw, &one) != nil || json.Unmarshal(d.raw, &other) != nil || fmt.Sprint(one) != fmt.Sprint(other) {
		t.Errorf("something else has changed:\n%s\n%s", was.raw, d.raw)
	}
}
