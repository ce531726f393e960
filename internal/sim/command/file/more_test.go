package file

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func TestKindsOfFilesAreThoseOfFile(t *testing.T) {
	files := map[string]string{
		"txt": "hello world\nit is text\n", "nonl": "no newline", "crlf": "a\r\nb\r\n", "mixed": "a\r\nb\n", "utf8": "h\u00e9llo w\u00f6rld\n", "latin": "h\xe9llo\n", "bom": "\ufeffhello\n", "empty": "", "sh": "#!/bin/sh\necho hi\n", "bash": "#!/bin/bash\necho hi\n", "env": "#!/usr/bin/env python3\nprint(1)\n", "perl": "#!/usr/bin/perl\nprint 1;\n", "node": "#!/usr/bin/env node\nx\n",
		"json": "{\"a\": [1, 2, {\"b\": null}]}\n", "jsonl": "{\"a\":1}\n{\"a\":2}\n", "xml": "<?xml version=\"1.0\"?>\n<a/>\n", "html": "<!DOCTYPE html>\n<html></html>\n", "csv": "a,b,c\n1,2,3\n4,5,6\n", "bin": "\x00\x01\x02\x03\xff\xfe", "png": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x10\x00\x00\x00\x20\x08\x06\x00\x00\x00abcd", "gif": "GIF89a\x10\x00\x20\x00\x00\x00\x00", "pdf": "%PDF-1.4\n%abc\n",
		"d/": "", "l": "-> txt", "broken": "-> nowhere", "long": strings.Repeat("x", 400) + "\n", "esc": "a\x1b[1mb\n", "diff": "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "c.c": "#include <stdio.h>\nint main(void) { return 0; }\n", "py": "import os\n\ndef f(x):\n    return x\n", "zst": "\x28\xb5\x2f\xfd\x04\x58\x19\x00\x00hi\n\xd5\x8e\x4c\xa7", "bz": "BZh91AY&SYabc",
	}
	var list []commandtest.Case
	for name := range files {
		list = append(list, commandtest.Case{Args: []string{"file", strings.TrimSuffix(name, "/")}, Files: files}, commandtest.Case{Args: []string{"file", "-bi", strings.TrimSuffix(name, "/")}, Files: files})
	}
	list = append(list, commandtest.Case{Args: []string{"file", "txt", "nope", "d", "longer-name"}, Files: files}, commandtest.Case{Args: []string{"file", "-L", "l"}, Files: files}, commandtest.Case{Args: []string{"file", "-b", "-"}, Stdin: "x\n"}, commandtest.Case{Args: []string{"file", "--mime-type", "txt", "json"}, Files: files})
	commandtest.Compare(t, Commands(), list)
}

func TestBlocksAreCopiedAsByDd(t *testing.T) {
	files := map[string]string{"a": strings.Repeat("Hello World\n", 100), "b": "other", "lines": "one\ntwo\nthree is long\n", "fixed": "one  two  three"}
	var list []commandtest.Case
	for line := range strings.SplitSeq(`dd if=a status=none
dd if=a bs=10 count=3 status=none
dd if=a bs=10 skip=2 count=1 status=none
dd if=a of=b status=noxfer
dd if=a of=b conv=notrunc bs=2 count=1 status=noxfer
dd if=a of=b seek=1 bs=3 count=1 status=noxfer
dd if=a of=b seek=1 bs=3 count=1 conv=notrunc status=noxfer
dd if=a of=z bs=100 status=noxfer
dd if=a of=z ibs=7 obs=100 status=noxfer
dd if=a bs=5 count=1 conv=ucase status=noxfer
dd if=a bs=5 count=1 conv=lcase status=none
dd if=a bs=5 count=2 conv=swab status=none
dd if=lines cbs=5 conv=block status=noxfer
dd if=fixed cbs=5 conv=unblock status=noxfer
dd if=lines bs=10 conv=sync status=noxfer
dd if=a iflag=count_bytes count=17 status=noxfer
dd if=a iflag=skip_bytes skip=17 bs=5 count=1 status=none
dd if=a count=17B status=none
dd if=nope
dd foo
dd bs=x
dd bs=0
dd conv=zz
dd conv=lcase,ucase
dd iflag=zz
dd status=zz
dd if=a of=nope/x
dd conv=excl if=a of=b
dd conv=nocreat if=a of=nope
dd bs=2x3 count=1 status=noxfer if=a
dd if=a skip=100 status=noxfer
dd oflag=append conv=notrunc if=lines of=b status=none
dd`, "\n") {
		list = append(list, commandtest.Case{Args: strings.Fields(line), Files: files, Stderr: true, Stdin: "", Look: []string{"a", "b", "z"}})
	}
	for i := range list {
		if len(list[i].Args) == 1 {
			list[i].Stderr = false
		}
	}
	commandtest.Compare(t, Commands(), list)
}

func TestRoomIsCountedAsByDu(t *testing.T) {
	files := map[string]string{"d/x": "1", "d/e/y": strings.Repeat("2", 9000), "f": "", "l": "-> d"}
	var list []commandtest.Case
	for _, line := range []string{"du d/e", "du -s d", "du -a d/e", "du -h d/e", "du -c d/e f", "du -b f", "du --apparent-size -b d/e/y", "du -S d", "du -d0 d", "du -B1 d/e", "du -BM d/e", "du -k f", "du nope", "du -s -a d", "du -d x d", "du l", "du -L l/e", "du -D l/e", "du --inodes d", "du --exclude=y d/e", "du -0 d/e", "du -t 1M d", "du --si d/e", "du -B z d", "df nope", "df --output=zz ."} {
		list = append(list, commandtest.Case{Args: strings.Fields(line), Files: files, Stderr: true})
	}
	commandtest.Compare(t, Commands(), list)
}

func TestTreeDrawsWhatIsThere(t *testing.T) {
	files := map[string]string{"d/x": "1", "d/e/y": "22", "d/.h": "", "d/l": "-> x", "d/z": ""}
	for _, c := range []struct{ args, want string }{
		{"tree d", "d\n├── e\n│\u00a0\u00a0 └── y\n├── l -> x\n├── x\n└── z\n\n2 directories, 4 files\n"},
		{"tree -d d", "d\n└── e\n\n2 directories\n"},
		{"tree -L 1 --noreport d", "d\n├── e\n├── l -> x\n├── x\n└── z\n"},
		{"tree -a -f -i --noreport d", "d\nd/.h\nd/e\nd/e/y\nd/l -> x\nd/x\nd/z\n"},
		{"tree -P y --noreport d", "d\n└── e\n    └── y\n"},
		{"tree -I e|l --noreport d", "d\n├── x\n└── z\n"},
		{"tree --dirsfirst -r --noreport d", "d\n├── e\n│\u00a0\u00a0 └── y\n├── z\n├── x\n└── l -> x\n"},
		{"tree -J d/e", "[\n  {\"type\":\"directory\",\"name\":\"d/e\",\"contents\":[\n    {\"type\":\"file\",\"name\":\"y\"}\n  ]}\n,\n  {\"type\":\"report\",\"directories\":1,\"files\":1}\n]\n"},
	} {
		r := commandtest.Run(t, Commands(), commandtest.Case{Args: strings.Fields(c.args), Files: files})
		if r.Stdout != c.want {
			t.Errorf("%s\ngot\n%s\nwant\n%s", c.args, r.Stdout, c.want)
		}
	}
}
