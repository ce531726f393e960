package interpreter_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/interpreter"
)

// plotting opens an Interpreter whose Python has matplotlib and pandas: those that make
// plotting put into the directory PADDOCK_TEST_PLOTTING, or those of the system.
func plotting(t *testing.T) *interpreter.Interpreter {
	t.Helper()
	var spec paddock.Spec
	var o interpreter.Options
	if dir := os.Getenv("PADDOCK_TEST_PLOTTING"); dir != "" {
		spec.Mounts = []paddock.Mount{{Source: dir, Target: "/mnt"}}
		spec.Dir = "/tmp"
		o.Env = func() map[string]string {
			return map[string]string{"PYTHONPATH": "/mnt", "MPLCONFIGDIR": "/tmp/matplotlib"}
		}
	}
	o.Sandbox = sandbox(t, spec)
	in := open(t, o)
	if o := run(t, in, interpreter.Cell{Code: "import matplotlib, pandas, numpy"}); len(o.errors) > 0 {
		t.Skipf("matplotlib and pandas are not installed: %s", o.failure())
	}
	return in
}

func TestFiguresAreShownWithWhatTheyShow(t *testing.T) {
	in := plotting(t)
	for name, c := range map[string]struct{ code, chart string }{
		"line": {"plt.plot([1, 2], [3, 4], label='a'); plt.title('T'); plt.xlabel('time (s)')",
			`{"type":"line","title":"T","x_label":"time (s)","x_unit":"s","y_label":null,"y_unit":null,"x_scale":"linear","y_scale":"linear","elements":[{"label":"a","points":[[1,3],[2,4]]}]}`},
		"dates": {"import datetime; plt.plot([datetime.date(2023, 9, 1)], [1])",
			`{"type":"line","x_scale":"datetime","elements":[{"label":"","points":[["2023-09-01T00:00:00+00:00",1]]}]}`},
		"categories": {"plt.plot([1, 2], ['A', 'B']); plt.show()",
			`{"type":"line","y_scale":"categorical","elements":[{"label":"","points":[[1,"A"],[2,"B"]]}]}`},
		"log":     {"plt.plot([1, 10], [1, 2]); plt.xscale('log')", `{"type":"line","x_scale":"log"}`},
		"scatter": {"plt.scatter([1, 2], [3, 4], label='s')", `{"type":"scatter","elements":[{"label":"s","points":[[1,3],[2,4]]}]}`},
		"bar": {"plt.bar(['x', 'y'], [10, 20])",
			`{"type":"bar","elements":[{"label":"x","group":"","value":10},{"label":"y","group":"","value":20}]}`},
		"lying bar": {"plt.barh(['x', 'y'], [10, 20], label='g')",
			`{"type":"bar","elements":[{"label":"x","group":"g","value":10},{"label":"y","group":"g","value":20}]}`},
		"pie": {"plt.pie([90, 10], labels=['a', 'b'], startangle=90)",
			`{"type":"pie","elements":[{"label":"a","angle":324,"radius":1},{"label":"b","angle":36,"radius":1}]}`},
		"box": {"fig, ax = plt.subplots(); ax.boxplot([[85, 90, 78, 92, 88], [95, 89, 76, 91, 84, 87]], tick_labels=['A', 'B']); ax.legend(); plt.show()",
			`{"type":"box_and_whisker","elements":[{"label":"A","min":78,"first_quartile":85,"median":88,"third_quartile":90,"max":92,"outliers":[]},{"label":"B","min":84,"first_quartile":84.75,"median":88,"third_quartile":90.5,"max":95,"outliers":[76]}]}`},
		"several": {"fig, axs = plt.subplots(1, 2); fig.suptitle('S'); axs[0].plot([1], [2]); axs[1].scatter([3], [4]); plt.show()",
			`{"type":"superchart","title":"S","elements":[{"type":"line","title":null},{"type":"scatter"}]}`},
		"unknown": {"fig, ax = plt.subplots(); ax.add_artist(plt.Circle((0, 0), 1)); plt.title('C'); plt.show()", `{"type":"unknown","title":"C","elements":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			o := run(t, in, interpreter.Cell{Code: "import matplotlib.pyplot as plt\n" + c.code + "\nNone"})
			if len(o.errors) > 0 || len(o.results) != 1 {
				t.Fatalf("%d results, %s", len(o.results), o.failure())
			}
			r := o.results[0]
			if r.Main || !strings.HasPrefix(r.Text(), "<Figure size") || !strings.HasPrefix(string(r.Data["image/png"]), `"iVBOR`) {
				t.Errorf("main %v, text %q, picture %.20s", r.Main, r.Text(), r.Data["image/png"])
			}
			var got, want any
			if err := json.Unmarshal([]byte(c.chart), &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(r.Data[interpreter.TypeChart], &got); err != nil || !covers(got, want) {
				t.Errorf("the chart is %s, want %s (%v)", r.Data[interpreter.TypeChart], c.chart, err)
			}
		})
	}
}

// covers tells whether got has all of want.
func covers(got, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		for k, v := range w {
			ok = ok && covers(g[k], v)
		}
		return ok
	case []any:
		g, ok := got.([]any)
		ok = ok && len(g) == len(w)
		for i := range w {
			ok = ok && covers(g[i], w[i])
		}
		return ok
	}
	return got == want
}

func TestTablesAreShownWithTheirData(t *testing.T) {
	in := plotting(t)
	o := run(t, in, interpreter.Cell{Code: "import pandas as pd\npd.DataFrame({'a': [1, None], 'b': pd.to_datetime(['2024-01-02', None])})"})
	if len(o.results) != 1 {
		t.Fatalf("%d results, %s", len(o.results), o.failure())
	}
	r := o.results[0]
	if got := string(r.Data[interpreter.TypeData]); !strings.Contains(got, `"a": [1.0, null]`) || !strings.Contains(got, `"b": ["2024-01-02T00:00:00", null]`) {
		t.Errorf("the data is %s", got)
	}
	if !strings.Contains(string(r.Data["text/html"]), "<table") {
		t.Errorf("HTML is %s", r.Data["text/html"])
	}
}

func TestFiguresAreShownAlsoAfterIPythonWasImported(t *testing.T) {
	in := plotting(t)
	for _, code := range []string{
		"from IPython.display import display, HTML, Image\nimport matplotlib.pyplot as plt\nplt.plot([1], [2]); None",
		"import IPython\nplt.switch_backend('agg')\nplt.plot([1], [2])\nplt.show()",
	} {
		o := run(t, in, interpreter.Cell{Code: code})
		if len(o.errors) > 0 || len(o.results) != 1 || !strings.HasPrefix(string(o.results[0].Data["image/png"]), `"iVBOR`) {
			t.Errorf("%q: %d results, %s", code, len(o.results), o.failure())
		}
	}
}

func TestAnImageOfPILIsShown(t *testing.T) {
	in := plotting(t)
	for _, mode := range []string{"RGB", "RGBA", "CMYK"} {
		o := run(t, in, interpreter.Cell{Code: "from PIL import Image\nImage.new('" + mode + "', (2, 2)).show()"})
		if len(o.errors) > 0 || len(o.results) != 1 || !strings.HasPrefix(string(o.results[0].Data["image/png"]), `"iVBOR`) {
			t.Errorf("%s: %d results, %s, errors %q", mode, len(o.results), o.failure(), o.err)
		}
	}
}
