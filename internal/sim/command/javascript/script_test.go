package javascript_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/command/javascript"
)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestScriptsSayWhatNodeSays(t *testing.T) {
	node := func(args ...string) []string { return append([]string{"node"}, args...) }
	pkg := map[string]string{
		"node_modules/pkg/package.json": `{"name":"pkg","main":"lib/main"}`, "node_modules/pkg/lib/main.js": "exports.hello=()=>'hello'; exports.default=5",
		"node_modules/@s/esm/package.json": `{"name":"@s/esm","type":"module","exports":{".":{"import":"./i.js","require":"./r.cjs"},"./sub/*":"./x/*.js"}}`,
		"node_modules/@s/esm/i.js":         "export const who='esm'", "node_modules/@s/esm/r.cjs": "exports.who='cjs'", "node_modules/@s/esm/x/y.js": "export const y=7",
		"data.json": `{"v":[1,2]}`, "sub/b.mjs": "export let b=1; export default class K{}; export function inc(){b++}",
		"main.mjs": `import fs, {readFileSync} from 'node:fs'; import {who} from '@s/esm'; import {y} from '@s/esm/sub/y'; import pkg, {hello} from 'pkg'; import * as ns from './sub/b.mjs';
import {createRequire} from 'module'; const require=createRequire(import.meta.url); console.log(typeof readFileSync, who, y, hello(), pkg.default, ns, require('@s/esm').who, require('./data.json').v, await import('./sub/b.mjs')===ns);
ns.inc(); console.log(ns.b); for (const n of ['./nope.mjs','nopkg']) try { await import(n) } catch(e) { console.log(e.code) }`,
		"cy1.js": "exports.a=1; const b=require('./cy2'); exports.done=true; console.log('in1',b)",
		"cy2.js": "const a=require('./cy1'); console.log('in2',a.a,a.done); exports.b=a.a+1; exports.m=[module.id===__filename,require.main===module]",
		"sh.js":  "#!/usr/bin/env node\nconsole.log('shebang')", "tla.mjs": "await new Promise(()=>{})",
	}
	commandtest.Compare(t, javascript.Commands(nil), []commandtest.Case{
		{Args: node("f.js"), Files: map[string]string{"f.js": read(t, "inspect.js")}},
		{Args: node("f.js"), Files: map[string]string{"f.js": read(t, "library.js")}},
		{Args: node("main.mjs"), Files: pkg},
		{Args: node("cy1.js"), Files: pkg},
		{Args: node("./cy1"), Files: pkg},
		{Args: node("sh.js"), Files: pkg},
		{Args: node("tla.mjs"), Files: pkg},
		{Args: node("none.js")},
		{Args: node("--nonsense")},
		{Args: node("-p", "[1,2].map(x=>x*2)")},
		{Args: node("-p", "os.EOL.length+process.argv.length", "a", "b")},
		{Args: node("-", "x"), Stdin: "console.log('stdin',process.argv.slice(1))"},
		{Args: node("-e", `process.stdin.on("data",d=>console.log("got",String(d))).on("end",()=>console.log("end"))`), Stdin: "a\nb\n"},
		{Args: node("-e", `console.log(require("fs").readFileSync(0,"utf8").split("\n"))`), Stdin: "x\ny\n"},
		{Args: node("-e", `const rl=require("readline").createInterface({input:process.stdin});let s=0;rl.on("line",l=>s+=+l).on("close",()=>console.log(s))`), Stdin: "1\n2\n3"},
		{Args: node("-e", "throw new TypeError('bad')")},
		{Args: node("-e", "Promise.reject(new Error('r'))")},
		{Args: node("-e", "async function m(){throw 1}; m()")},
		{Args: node("-e", "process.exit(4)")},
		{Args: node("-e", "this is not JavaScript")},
		{Args: node("-e", "process.on('uncaughtException',e=>{console.log('caught',e.message)}); setTimeout(()=>console.log('later'),5); throw new Error('x')")},
		{Args: node("-e", "let n=0;const i=setInterval(()=>{console.log(n);if(++n==3)clearInterval(i)},2)")},
		{Args: node("-e", "setInterval(()=>{},1000).unref(); console.log('unref')")},
		{Args: node("--input-type=module", "-e", "await 1; console.log('esm', typeof require)")},
		{Args: node("-e", "console.log(__filename,__dirname,require.main===module)")},
		{Args: node("-e", `process.stdout.write("no newline\xc3"); process.stdout.write(Buffer.from([0,255,254]))`)},
		{Args: node("-e", "console.log('a'.repeat(5000).indexOf('a'.repeat(40)+'b'), ('é'.repeat(5000)+'x'.repeat(40)).indexOf('x'.repeat(40)), ('ab'.repeat(3000)).lastIndexOf('ab'.repeat(20)), ('ab'.repeat(3000)).split('ab'.repeat(20)).length, ('ab'.repeat(3000)).replaceAll('ab'.repeat(20),'c$&d').length)")},
	})
}

func limited(t *testing.T, l budget.Limits, code string) commandtest.Result {
	t.Helper()
	return commandtest.RunWithin(t, javascript.Commands(nil), commandtest.Case{Args: []string{"node", "-e", code}}, l)
}

func TestAScriptThatTakesTooMuchEndsByTheLimitOfThatName(t *testing.T) {
	short := budget.Limits{ScriptTime: time.Second, ScriptHeap: 16 << 20, Steps: 1 << 60}
	small := short
	small.ScriptTime = time.Minute // a busy machine takes a while to fill the memory
	for _, c := range []struct {
		limit  string
		limits budget.Limits
		code   string
	}{
		{"script_time", short, "for(;;);"},
		{"script_time", short, "try{for(;;);}finally{console.log(1)}"},
		{"script_time", short, "process.nextTick(function f(){process.nextTick(f)})"},
		{"script_time", short, "(async()=>{for(;;)await null})()"},
		{"script_time", short, "setInterval(()=>{},1)"},
		{"script_time", short, "/(a+)+$/.test('a'.repeat(40)+'b')"},
		{"script_time", short, "setTimeout(()=>{},1e6)"},
		{"steps", budget.Limits{Steps: 1_000_000}, "for(;;);"},
		{"script_heap", small, "let a=[];for(;;)a.push({a:1})"},
		{"script_heap", small, "const w=[];for(;;)w.push(new Promise(()=>{}))"},
		{"script_heap", small, "try{Buffer.alloc(1e9)}catch{};for(;;);"},
		{"heap", budget.Limits{Heap: 8 << 20}, "let a=[];for(;;)a.push({a:1})"},
		{"script_heap", small, "require('zlib').gunzipSync(Buffer.concat(Array(1000).fill(require('zlib').gzipSync(Buffer.alloc(1e5)))))"},
	} {
		if r := limited(t, c.limits, c.code); !strings.Contains(r.Stderr, `"`+c.limit+`"`) {
			t.Errorf("%s: not ended by %s: %+v", c.code, c.limit, r)
		}
	}
}

func TestWhatHasNoEndInTheEngineThrows(t *testing.T) {
	for _, code := range []string{
		"(function f(){f()})()", "[].indexOf.call({length:2**53-1},1)", "new Array(4294967295).forEach(x=>x)", "let x='ab';for(;;)x+=x",
		"JSON.parse('['.repeat(1e6))", "new Function('('.repeat(1e6))", "new ArrayBuffer(2**40)", "Atomics.wait(new Int32Array(new SharedArrayBuffer(8)),0,0)",
		"let b=2n;for(;;)b=b*b", "const e=new Proxy({},{get(t,k,r){return r[k]}}); e.x", "require('vm').runInThisContext('(')",
	} {
		if r := limited(t, budget.Limits{}, "try{"+code+"}catch(e){console.log('caught')}"); r.Stdout != "caught\n" || r.Status != 0 {
			t.Errorf("%s: %+v", code, r)
		}
	}
}

// A length that is small when it is looked at, and has no end when the engine asks.
func TestALengthThatChangesHasNoEndEither(t *testing.T) {
	for _, code := range []string{
		"let n=0; print(Array.prototype.lastIndexOf.call({get length(){return n++?2**53-1:3},1:'x'},'x'))",
		"let n=0; print(Array.prototype.lastIndexOf.call({length:{valueOf(){return n++?2**53-1:3}},1:'x'},'x'))",
		"let n=0; print(Array.prototype.lastIndexOf.call(new Proxy([0,'x',0],{get(t,k){return k==='length'&&n++?2**53-1:t[k]}}),'x'))",
		"let n=0; print(Array.prototype.lastIndexOf.call(new Proxy({length:3,1:'x'},{get(t,k){return k==='length'&&n++?2**53-1:t[k]}}),'x'))",
		"try{[].concat({length:2**53-1,[Symbol.isConcatSpreadable]:true})}catch(e){print(1)}",
		"let n=0; print([].concat({length:2**53-1,get [Symbol.isConcatSpreadable](){return n++>0}}).length)",
		"let n=0; print([7].concat({get length(){return n++?2**53-1:1},0:0,[Symbol.isConcatSpreadable]:true}).length-1)",
		"let own; const a=Reflect.apply; Reflect.apply=(f,t,x)=>{own=f;return a(f,t,x)}; [].lastIndexOf(0); print(own?'leaked':1)",
		"const o={length:2,1:'x'}; print(Array.prototype.fill.call(o,'y')===o&&o[1]==='y'?1:0)",
		"let n=0; const o={get length(){return n++?2**53-1:2}}; print(Array.prototype.fill.call(o,'y')===o&&o[1]==='y'?1:0)",
		"(function(){print([].concat([1],arguments.length,Array.prototype.slice.call(arguments,1))[2])})(0,1)",
		"print([].concat(1,[1,[2]],'x').length-3)",
	} {
		r := limited(t, budget.Limits{ScriptTime: 5 * time.Minute}, "const print=console.log; "+code)
		if r.Stdout != "1\n" || r.Status != 0 {
			t.Errorf("%s: %+v", code, r)
		}
	}
}

func TestAPanicOfTheTaskEndsTheScriptWhereverItIs(t *testing.T) {
	r := limited(t, budget.Limits{}, "try{[1].map(()=>process.kill(process.pid,'SIGTERM'))}catch(e){console.log('caught')}finally{console.log('finally')}; console.log('on')")
	if r.Stdout != "" || r.Status != 143 {
		t.Errorf("%+v", r)
	}
}

func BenchmarkStart(b *testing.B) {
	t := &testing.T{}
	commands := javascript.Commands(nil)
	for b.Loop() {
		commandtest.Run(t, commands, commandtest.Case{Args: []string{"node", "-e", "console.log(1+1)"}})
	}
}
