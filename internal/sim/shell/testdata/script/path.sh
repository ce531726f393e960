# Where bash finds a program in PATH. If there is none, it takes the first file,
# which cannot be executed, unless that is a directory.
said() { local m; m=$("$@" 2>&1); echo $? "${m##*: line [0-9]*([0-9]): }"; }
shopt -s extglob
old=$PATH
mkdir -p dirs/tool dirs/other bin last; echo 'echo ran' > bin/tool
PATH=dirs; said tool; type tool 2> /dev/null; echo $?
PATH=dirs:bin; said tool; type -t tool; hash tool 2> /dev/null; echo $?
PATH=none:bin:dirs; said tool; type -t tool; hash tool 2> /dev/null; echo $?
PATH=$old; cp bin/tool last/tool; chmod +x last/tool
PATH=dirs:bin:last:$old; said tool; type -P tool; said other
PATH=bin; command tool 2> /dev/null; echo $?
PATH=$old; rm -r dirs bin last
PATH=; said tool; unset PATH; said tool; PATH=:; said tool
PATH=$old; mkdir here; cp /dev/null here/tool; chmod +x here/tool; cd here; echo 'echo here' > tool
PATH=; said tool; unset PATH; said tool; PATH=:; said tool
cd ..; PATH=$old; mkdir -p dirs/tool bin tool; echo 'echo ran' > bin/tool
replaced() { local m; m=$(exec "$@" 2>&1); echo $? "${m##*: }"; }
PATH=dirs; replaced tool; cd dirs; PATH=..:../bin; replaced other; cd tool; PATH=../..; replaced tool; PATH=../../bin:../..; replaced tool
