package agenttest_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/agenttest"
)

// ask posts to a model as whoever trusts its authority.
func ask(t *testing.T, m *agenttest.Model, path, body string) string {
	t.Helper()
	pem, err := os.ReadFile(m.Authority())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: agenttest.Host}}}
	defer c.CloseIdleConnections()
	r, err := c.Post("https://127.0.0.1:"+m.Port()+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v: %s", path, r.StatusCode, err, text)
	}
	return string(text)
}

func TestAModelAnswersInTheWordsOfEachVendor(t *testing.T) {
	for name, c := range map[string]struct{ path, first, second, third string }{
		"Anthropic": {
			"/v1/messages",
			`{"stream":true,"messages":[{"role":"user"}],"tools":[{"name":"Bash","input_schema":{"properties":{"command":{}}}}]}`,
			`{"messages":[{"role":"user"},{"role":"assistant"},{"role":"user"}],"tools":[{"name":"Bash"}]}`,
			`{"messages":[{"role":"user"}]}`,
		},
		"Responses": {
			"/v1/responses",
			`{"stream":true,"input":[{"type":"message","role":"user"}],"tools":[{"type":"function","name":"exec_command"}]}`,
			`{"input":[{"type":"additional_tools","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"}]}]},{"type":"custom_tool_call"}]}`,
			`{"input":"a title, please"}`,
		},
		"chat": {
			"/v1/chat/completions",
			`{"stream":true,"messages":[{"role":"user"}],"tools":[{"function":{"name":"bash"}}]}`,
			`{"messages":[{"role":"user"},{"role":"assistant"}],"tools":[{"function":{"name":"bash"}}]}`,
			`{"messages":[{"role":"user"}]}`,
		},
		"Gemini": {
			"/v1beta/models/m:streamGenerateContent?alt=sse",
			`{"contents":[{"role":"user"}],"tools":[{"functionDeclarations":[{"name":"run_shell_command"}]}]}`,
			`{"contents":[{"role":"user"},{"role":"model"}],"tools":[{"functionDeclarations":[{"name":"run_shell_command"}]}]}`,
			`{"contents":[{"role":"user"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := agenttest.NewModel(t, agenttest.Shell("echo of the script"), agenttest.Say("I am done."))
			if got := ask(t, m, c.path, c.first); !strings.Contains(got, "echo of the script") {
				t.Errorf("the first turn is %s", got)
			}
			if got := ask(t, m, c.path, c.second); !strings.Contains(got, "I am done.") {
				t.Errorf("the second turn is %s", got)
			}
			if got := ask(t, m, c.path, c.third); !strings.Contains(got, "A title") {
				t.Errorf("without tools it says %s", got)
			}
			if got := m.Reached(); !slices.Equal(got, []int{0, 1}) {
				t.Errorf("the turns %d were reached", got)
			}
		})
	}
}

func TestAToolGetsTheArgumentsThatItOffers(t *testing.T) {
	m := agenttest.NewModel(t, agenttest.Edit("/w/a", "old text", "new text"))
	got := ask(t, m, "/v1/messages", `{"messages":[],"tools":[{"name":"edit","input_schema":{"properties":{"path":{},"edits":{}}}}]}`)
	if !strings.Contains(got, `"edits":[{"newText":"new text","oldText":"old text"}]`) || strings.Contains(got, "filePath") {
		t.Errorf("the call is %s", got)
	}
}

func TestATurnThatNoToolCanDoIsSaid(t *testing.T) {
	m := agenttest.NewModel(t, agenttest.Write("/w/a", "text"))
	if got := ask(t, m, "/v1/messages", `{"messages":[],"tools":[{"name":"other"}]}`); !strings.Contains(got, "the script has no tool for turn 0") {
		t.Errorf("it says %s", got)
	}
}

func TestRequestsAreKept(t *testing.T) {
	m := agenttest.NewModel(t)
	ask(t, m, "/v1/messages/count_tokens", `{"a":1}`)
	if got := m.Requests(); len(got) != 1 || got[0].Turn != -1 || !bytes.Equal(got[0].Body, []byte(`{"a":1}`)) {
		t.Errorf("it keeps %v", got)
	}
}
