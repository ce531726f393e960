package policy

import (
	"os"
	"strings"
	"testing"
)

// blocks gives the fenced blocks of docs/reference/policy.md, each with the words that
// stand after its fence.
func blocks(t *testing.T) (page string, infos, texts []string) {
	t.Helper()
	data, err := os.ReadFile("../../docs/reference/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	page = string(data)
	for i, part := range strings.Split("\n"+page, "\n```") {
		if i%2 == 1 {
			info, text, _ := strings.Cut(part, "\n")
			infos, texts = append(infos, info), append(texts, text+"\n")
		}
	}
	return page, infos, texts
}

func TestTheExamplesOfTheManualAreTrue(t *testing.T) {
	validate := validator(t)
	_, infos, texts := blocks(t)
	seen := map[string]int{}
	for i, info := range infos {
		seen[info]++
		switch info {
		case "yaml":
			f, err := Read("policy.yaml", []byte(texts[i]))
			if err != nil {
				t.Errorf("%v\n%s", err, texts[i])
				continue
			}
			if len(f.Notes) > 0 {
				t.Errorf("an example with notes: %v", f.Notes)
			}
			if err := validate(texts[i]); err != nil {
				t.Errorf("the schema refuses an example: %v", err)
			}
		case "yaml wrong":
			_, err := Read("policy.yaml", []byte(texts[i]))
			if err == nil || err.Error() != strings.TrimSpace(texts[i+1]) {
				t.Errorf("the errors are\n%v\nand not\n%s", err, texts[i+1])
			}
			if validate(texts[i]) == nil {
				t.Error("the schema accepts the wrong example")
			}
		case "json":
			f, err := ReadSRT("settings.json", []byte(texts[i]), caller)
			if err != nil || len(f.Notes) > 0 {
				t.Errorf("%v, %+v", err, f)
			}
		}
	}
	if seen["yaml"] < 2 || seen["yaml wrong"] != 1 || seen["json"] != 1 {
		t.Errorf("examples are missing: %v", seen)
	}
}

func TestTheManualNamesEveryKey(t *testing.T) {
	page, _, _ := blocks(t)
	has := func(text string) {
		if !strings.Contains(page, "`"+text+"`") {
			t.Errorf("docs/reference/policy.md does not name %s", text)
		}
	}
	for _, f := range version1().fields {
		if f.shape.kind != object {
			has(f.name)
			continue
		}
		for _, g := range f.shape.fields {
			has(f.name + "." + g.name)
		}
	}
}
