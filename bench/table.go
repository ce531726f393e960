//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// A row is a line of the table. Empty cells are printed as a dash.
type row struct {
	what     string
	p50, p99 string
	ratio    string // median ÷ paddock's median
	runs     int
}

func ms(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

// table gives the rows as Markdown below a line about the machine.
func table(machine string, rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", machine)
	b.WriteString("| what | median | p99 | beside paddock | runs |\n| --- | ---: | ---: | ---: | ---: |\n")
	for _, r := range rows {
		cells := []string{r.what, r.p50, r.p99, r.ratio, fmt.Sprint(r.runs)}
		for i, c := range cells {
			if c == "" {
				c = "–"
			}
			cells[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

// machine says what the numbers were measured on.
func machine() string {
	load, _, _ := strings.Cut(word("/proc/loadavg"), " ")
	kernel := word("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("Measured %s on %s, %d processors, Linux %s, load %s, by `make bench`.",
		time.Now().Format(time.DateOnly), processor(), runtime.NumCPU(), kernel, load)
}

// word gives what a file of the kernel says.
func word(name string) string {
	data, err := os.ReadFile(name)
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(data))
}

func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if name, value, ok := strings.Cut(in.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// Names in the markers of tables. A run that leaves a table out leaves it as it is.
const (
	mainTable    = "bench"
	networkTable = "bench network"
	machineTable = "bench machines"
	serverTable  = "bench server"
	e2bTable     = "bench e2b"
	stepTable    = "bench steps"
	imageTable   = "bench images"
)

// update replaces what is between the markers of a table in a document.
func update(name, table, text string) error {
	begin, end := "<!-- "+table+": begin -->\n", "<!-- "+table+": end -->"
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	head, rest, ok := bytes.Cut(data, []byte(begin))
	_, tail, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no markers %q and %q", name, strings.TrimSpace(begin), end)
	}
	return os.WriteFile(name, []byte(string(head)+begin+"\n"+text+"\n"+end+string(tail)), 0o644)
}
