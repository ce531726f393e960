package attack

// toolScripts returns the scripts of a case that use tools which read, write or start
// things by themselves.
func toolScripts(id string) []spell {
	switch id {
	case "A01":
		return []spell{
			{"tar with absolute names", `mkdir -p /tmp/t && echo x > /tmp/t/f && tar -C /tmp/t -cPf /tmp/a.tar --transform="s,^f,$H/$MARK-tar," f && tar -xPf /tmp/a.tar`},
			{"git", `cd /tmp && git init -q "$H/$MARK-git"`},
			{"JavaScript", `js-exec -c 'require("fs").writeFileSync(process.env.H + "/" + process.env.MARK + "-js", "x")'`},
			{"sqlite3", `sqlite3 "$H/$MARK-sql" 'create table t (x)'`},
			{"awk", `awk 'BEGIN { print "x" > (ENVIRON["H"] "/" ENVIRON["MARK"] "-awk") }'`},
			{"curl", `curl -s -o "$H/$MARK-curl" file:///etc/hostname`},
		}
	case "A03":
		return []spell{
			{"tar through a link", `mkdir -p /tmp/t/link-home && echo x > /tmp/t/link-home/.bashrc && tar -C /tmp/t -cf /tmp/a.tar . && tar -C "$W" -xf /tmp/a.tar`},
			{"tar with a link of its own", `mkdir /tmp/t && ln -s "$H" /tmp/t/out && tar -C /tmp/t -cf /tmp/a.tar out && rm /tmp/t/out && mkdir /tmp/t/out && echo x > /tmp/t/out/.bashrc && tar -C /tmp/t -rf /tmp/a.tar out/.bashrc && tar -C "$W" -xf /tmp/a.tar`},
			{"tar upwards", `mkdir -p /tmp/t && echo x > /tmp/t/f && tar -C /tmp/t -cPf /tmp/a.tar --transform='s,^f,../.bashrc,' f && tar -C "$W" -xPf /tmp/a.tar`},
			{"unzip through a link", `mkdir -p /tmp/t/link-home && cd /tmp/t && echo x > link-home/.bashrc && zip -qr /tmp/a.zip link-home && unzip -qo /tmp/a.zip -d "$W"`},
			{"unzip upwards", `cd "$W/scripts" && echo x > ../up && zip -q /tmp/a.zip ../up && cd "$W/scripts" && unzip -qo /tmp/a.zip`},
			{"patch upwards", `cd "$W" && printf -- '--- ../.bashrc\n+++ ../.bashrc\n@@ -1 +1 @@\n-# start\n+owned\n' | patch -p0`},
			{"sed through a link", `sed -i s/start/owned/ "$W/link-bashrc"`},
			{"JavaScript", `js-exec -c 'require("fs").appendFileSync(process.env.W + "/link-bashrc", "x")'`},
		}
	case "A08", "A05", "A10", "A22":
		return []spell{
			{"JavaScript", `js-exec -c 'console.log(require("fs").readFileSync(process.env.RF, "utf8"))'`},
			{"JavaScript, by a link", `js-exec -c 'const fs = require("fs"); fs.symlinkSync(process.env.RF, "/tmp/l"); console.log(fs.readFileSync("/tmp/l", "utf8"))'`},
			{"JavaScript, as a module", `js-exec -c "import(process.env.RF).then(console.log)"`},
			{"sqlite3 .import", `sqlite3 :memory: 'create table t (x)' ".import $RF t" 'select * from t'`},
			{"sqlite3 .read", `sqlite3 :memory: ".read $RF" 2>&1 | grep canary`},
			{"sqlite3 attach", `sqlite3 :memory: "attach '$RF' as a; select * from a.sqlite_master" 2>&1 | grep canary`},
			{"sqlite3 readfile", `sqlite3 :memory: "select readfile('$RF')"`},
			{"sqlite3 .shell", `sqlite3 :memory: ".shell cat $RF"`},
			{"awk getline", `awk 'BEGIN { if ((getline x < ENVIRON["RF"]) < 1) exit 1; print x }'`},
			{"jq", `jq -R . "$RF"`},
			{"jq rawfile", `jq -n --rawfile x "$RF" '$x'`},
			{"git", `cd /tmp && git init -q g2 && cd g2 && cp "$RF" f && git add f && git -c user.name=x -c user.email=x commit -qm x && git show | grep canary`},
			{"git object", `cd /tmp && git init -q g && cd g && git hash-object -w "$RF" && git cat-file -p "$(git hash-object "$RF")"`},
			{"zip", `zip -q /tmp/z.zip "$RF" && unzip -p /tmp/z.zip`},
			{"dd", `dd status=none if="$RF"`},
			{"base64", `base64 "$RF" | base64 -d | grep canary`},
			{"curl", `curl -s "file://$RF"`},
			{"patterns of grep", `grep -f "$RF" "$RF"`},
			{"names of wc", `wc --files0-from="$RF" 2>&1 | grep canary`},
			{"names of find", `find -files0-from "$RF" 2>&1 | grep canary`},
			{"arguments", `xargs -a "$RF" echo`},
			{"dates", `date -f "$RF" 2>&1 | grep canary`},
			{"sed", `echo | sed "r $RF" | grep canary`},
			{"everything", `cp -r "$RF" "$RD" /tmp; grep -r canary /tmp`},
		}
	case "A17":
		return []spell{
			{"archive bomb", `cd /tmp && head -c 200M /dev/zero | gzip | gzip | gzip > b.gz; for i in 1 2 3; do gunzip < b.gz > c && mv c b.gz; done`},
			{"zip bomb", `cd /tmp && head -c 50M /dev/zero > z; zip -q a.zip z && rm z && for ((i = 0; ; i++)); do unzip -qo a.zip -d d$i || exit 1; done`},
			{"database", `sqlite3 /tmp/d "create table t (x); with recursive c(n) as (select 1 union all select n + 1 from c) insert into t select randomblob(1000) from c"`},
			{"pattern space", `yes | sed -n 'H'`},
		}
	case "P07":
		return []spell{
			{"wget", `wget -q -O- http://127.0.0.1/`}, {"another spelling", `curl -s http://0x7f000001/ || curl -s http://0/ || curl -s 'http://[::ffff:127.0.0.1]/' || curl -s http://localhost.:80/`},
			{"JavaScript", `js-exec -c 'fetch("http://127.0.0.1/").then(() => process.exit(0), () => process.exit(1))'`},
			{"JavaScript sockets", `js-exec -c 'require("net").connect(80)'`}, {"git", `cd /tmp && git clone -q http://127.0.0.1/x.git`}, {"names", `getent hosts localhost.example || curl -s http://example.com/`},
		}
	case "P16":
		return []spell{{"JavaScript", `js-exec -c 'const fs = require("fs"); let r = 1; for (let f = 3; f < 400; f++) try { const b = Buffer.alloc(99); fs.readSync(f, b); console.log(b.toString()); r = 0 } catch {}; process.exit(r)'`}}
	case "P23":
		return []spell{
			{"JavaScript", `js-exec -c 'console.log(process.env)'`}, {"jq", `jq -n env`},
			{"git configuration", `git config --global --list; git config --system --list; cd /tmp && git init -q g && cd g && echo x > f && git add f && git commit -qm x; git log; true`},
			{"git, told where", `export GIT_CONFIG_GLOBAL="$H/.gitconfig" HOME="$H" XDG_CONFIG_HOME="$H/.config"; cd /tmp && git init -q g && cd g && echo x > f && git add f && git commit -qm x; git config user.email; git log; true`},
			{"git include", `cd /tmp && git init -q g && cd g && printf '[include]\n\tpath = %s/.gitconfig\n' "$H" >> .git/config && git config user.email`},
		}
	case "P24":
		return []spell{
			{"JavaScript", `js-exec -c 'console.log(require("fs").readFileSync(process.env.SECRET, "utf8"))'`},
			{"git alternates", `cd /tmp && git init -q g && cd g && echo "$PLACE" > .git/objects/info/alternates && git log`},
			{"git directory elsewhere", `mkdir /tmp/g && cd /tmp/g && echo "gitdir: $W/.git" > .git && git log`},
			{"sqlite3", `sqlite3 "$SECRET" .dump | grep canary`}, {"curl", `curl -s "file://$SECRET"`}, {"upload", `curl -s -T "$SECRET" http://127.0.0.1/`}, {"time zones", `TZ="../../..$SECRET" date && TZ=":$SECRET" date +%Z | grep canary`},
			{"host names", `cat /etc/hosts /etc/resolv.conf /etc/machine-id && hostname | grep -qx "$(cat /proc/sys/kernel/hostname)"`},
		}
	case "P25":
		return []spell{
			{"find -exec", `find / -maxdepth 0 -exec "$SELF" whoami \;  -exec test -e /tmp/none \; | grep .`}, {"xargs", `echo whoami | xargs "$SELF"`}, {"env", `env "$SELF" whoami`}, {"timeout", `timeout 1 "$SELF" whoami`},
			{"awk system", `awk 'BEGIN { exit system(ENVIRON["SELF"] " whoami") }'`}, {"JavaScript", `js-exec -c 'require("child_process").execFileSync(process.env.SELF, ["whoami"])'`},
			{"sed e", `echo x | sed "s,.*,$SELF whoami,e" | grep .`}, {"tar -I", `tar -I "$SELF" -cf /tmp/x /etc/hostname`}, {"sort", `sort --compress-program="$SELF" -S 1 /etc/passwd > /dev/null; "$SELF"`},
			{"git hook", `cd /tmp && git init -q g && cd g && mkdir -p .git/hooks && cp "$SELF" .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && echo x > f && git add f && git -c user.name=x -c user.email=x commit -qm x`},
			{"git settings", `cd /tmp && git init -q g && cd g && git config core.fsmonitor "$SELF" && git config core.pager "$SELF" && git config diff.external "$SELF" && git status`},
			{"sqlite3 extension", `sqlite3 :memory: "select load_extension('$SELF')" || sqlite3 :memory: ".load $SELF"`},
		}
	case "P22":
		return []spell{
			{"JavaScript memory", `js-exec -c 'let a = []; for (;;) a.push(new Array(100000).fill(1))'`}, {"JavaScript loop", `js-exec -c 'for (;;) {}'`}, {"JavaScript expressions", `js-exec -c '/^(a+)+$/.test("a".repeat(40) + "b")'`},
			{"database loop", `sqlite3 :memory: 'with recursive c(n) as (select 1 union all select n + 1 from c) select count(*) from c'`},
			{"awk", `awk 'BEGIN { while (1) a[i++] = i }'`}, {"jq", `jq -n '[range(1e12)]'`}, {"jq recursion", `jq -n 'def f: [f]; f'`}, {"sed loop", `echo | sed ':a;s/^/xx/;ta'`},
		}
	}
	return nil
}
