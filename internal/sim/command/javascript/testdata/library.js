const assert=require('assert'), fs=require('fs'), EventEmitter=require('events'), qs=require('querystring'), crypto=require('crypto'), zlib=require('zlib'), readline=require('readline');
fs.writeFileSync('t1.txt','héllo\nworld\n'); fs.appendFileSync('t1.txt','more');
console.log(fs.readFileSync('t1.txt','utf8').split('\n'), fs.readFileSync('t1.txt').length, fs.existsSync('/nope'), fs.statSync('t1.txt').size, fs.statSync('.').isDirectory());
for (const f of [()=>fs.readFileSync('nope'),()=>fs.readdirSync('nope'),()=>fs.mkdirSync('.'),()=>fs.rmdirSync('nope'),()=>fs.readFileSync('.'),()=>fs.unlinkSync('nope'),()=>fs.renameSync('nope','x'),()=>fs.openSync('nope'),()=>fs.lstatSync('nope'),()=>fs.readlinkSync('t1.txt'),()=>fs.accessSync('nope'),()=>fs.copyFileSync('nope','y'),()=>fs.closeSync(99)]) try{f()}catch(e){console.log(e.code,e.errno,e.syscall,e.path,e.message)}
fs.mkdirSync('d1/d2/d3',{recursive:true}); fs.writeFileSync('d1/x','1'); console.log(fs.readdirSync('d1'), fs.readdirSync('d1',{withFileTypes:true}).map(d=>[d.name,d.isDirectory()]), fs.readdirSync('d1',{recursive:true}).sort()); fs.rmSync('d1',{recursive:true});
fs.symlinkSync('t1.txt','l'); console.log(fs.readlinkSync('l'), fs.lstatSync('l').isSymbolicLink(), fs.statSync('l').isFile()); fs.unlinkSync('l');
const fd=fs.openSync('t1.txt','r+'); const b=Buffer.alloc(4); console.log(fs.readSync(fd,b,0,4,7),b.toString(),fs.writeSync(fd,'XY',0),fs.fstatSync(fd).size); fs.closeSync(fd); console.log(fs.readFileSync('t1.txt','latin1'));
fs.writeFileSync('t1.txt','héllo\nworld\nmore');
const ee=new EventEmitter(); ee.on('a',(x)=>console.log('ev',x)); ee.once('a',()=>console.log('once')); ee.emit('a',1); ee.emit('a',2); console.log(ee.listenerCount('a'));
const u=new URL('https://user:pw@example.com:8080/p/a/t/h?query=string&a=1#hash'); console.log(u.host,u.pathname,u.search,u.searchParams.get('a'),u.href,String(new URL('../x?y#z','http://h/a/b/c')), new URL('HTTP://EX.com:80/%7Efoo/../a b?q=ä#é').href);
console.log(u, new URLSearchParams('a=1&b=2'));
console.log(qs.parse('a=1&b=2&a=3'), qs.stringify({x:[1,2],y:'z w'}), crypto.createHash('sha256').update('abc').digest('hex'), crypto.createHmac('md5','k').update('d').digest('base64'), zlib.gunzipSync(zlib.gzipSync('hello')).toString(), crypto.randomUUID().length);
setTimeout(()=>console.log('t0'),0); process.nextTick(()=>console.log('tick')); Promise.resolve().then(()=>console.log('micro')); queueMicrotask(()=>console.log('qm'));
(async()=>{ await null; console.log('async'); for await (const l of readline.createInterface({input:fs.createReadStream('t1.txt')})) console.log('line',l);
 const {pipeline}=require('stream/promises'); await pipeline(fs.createReadStream('t1.txt'), zlib.createGzip(), fs.createWriteStream('t1.gz')); console.log(zlib.gunzipSync(fs.readFileSync('t1.gz')).length);
 console.log(await fs.promises.readFile('t1.txt','utf8').then(s=>s.length), await fs.promises.access('/nope').catch(e=>e.code));
 const {Readable,Transform}=require('stream'); const up=new Transform({transform(c,e,d){d(null,String(c).toUpperCase())}}); let got=''; for await (const c of Readable.from(['a','b']).pipe(up)) got+=c; console.log(got);
})();
try{assert.strictEqual(1,2)}catch(e){console.log(e.message)}
try{assert.deepStrictEqual({a:1,b:[1,2]},{a:1,b:[1,3]})}catch(e){console.log(e.message)}
try{assert(false,'msg')}catch(e){console.log(e.name,e.message,e.code)}
assert.throws(()=>{throw new TypeError('bad')},/bad/); assert.deepEqual([1,'2'],[1,2]);
console.log(Buffer.from('aGk=','base64').toString(),Buffer.from('ff00','hex'),Buffer.concat([Buffer.from('a'),Buffer.from('b')]).toString(),Buffer.alloc(3,1),Buffer.byteLength('é'),Buffer.from([1,2,3]).readUInt16BE(1),Buffer.from('abc').equals(Buffer.from('abc')), Buffer.from('€uro').slice(0,3).toString(), Buffer.from('test').toJSON(), Buffer.from([0xff,0xc3,0x28,0xe2,0x82]).toString());
console.log(structuredClone({a:new Date(0),m:new Map([[1,{b:2}]])}), atob('aGk='), btoa('hi'), new TextEncoder().encode('é'), new TextDecoder().decode(new Uint8Array([0xe2,0x82,0xac])));
process.on('exit',(c)=>console.log('exit',c)); process.exitCode=3;
