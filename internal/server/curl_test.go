package server

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

func TestTheRecipesForCurlRunAsDocumented(t *testing.T) {
	for _, program := range []string{"bash", "curl", "jq"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%v: make referees", err)
		}
	}
	page, err := os.ReadFile("../../docs/reference/api.md")
	if err != nil {
		t.Fatal(err)
	}
	script := regexp.MustCompile("(?s)<!-- test: curl -->\n```sh\n(.*?)```").FindSubmatch(page)
	output := regexp.MustCompile("(?s)<!-- output: curl -->\n```text\n(.*?)```").FindSubmatch(page)
	if script == nil || output == nil {
		t.Fatal("the page has no recipes")
	}
	tr := newTrial(t)
	c := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", string(script[1]))
	c.Env = append(os.Environ(), "SERVER="+tr.web.URL, "KEY=good")
	got, err := c.CombinedOutput()
	if err != nil || string(got) != string(output[1]) {
		t.Errorf("%v\nit printed\n%s\nand the page says\n%s", err, got, output[1])
	}
}
