# What ends a shell under set -e, and what does not.
(set -e; false; echo no); echo $?
(set -e; false || true; false && true; echo yes); echo $?
(set -e; if false; then :; fi; while false; do :; done; ! true; echo yes); echo $?
(set -e; f() { false; echo in; }; f || echo or; echo yes); echo $?
(set -e; f() { false; echo in; }; f; echo no); echo $?
(set -e; x=$(false); echo no); echo $?
(set -e; echo $(false; echo inner); echo yes); echo $?
(set -e; shopt -s inherit_errexit; echo "<$(false; echo inner)>"; echo yes); echo $?
(set -e; local_test() { local x=$(false); echo yes; }; local_test); echo $?
(set -e; (false); echo no); echo $?
(set -e; { false; }; echo no); echo $?
(set -e; true | false; echo no); echo $?
(set -e; false | true; echo yes); echo $?
(set -eo pipefail; false | true; echo no); echo $?
(set -e; [[ a = b ]]; echo no); echo $?
(set -e; ((0)); echo no); echo $?
(f() { set -e; false; echo no; }; ! f; echo no); echo $?
(set -e; trap 'echo trapped $?' EXIT; false); echo $?
(set -e; eval false; echo no); echo $?
(set -e; for i in 1; do false; done; echo no); echo $?
(set -e; case x in x) false;; esac; echo no); echo $?
(trap 'echo ERR $?' ERR; false; (exit 3); true && false; if false; then :; fi; echo end)
(set -E; trap 'echo ERR $LINENO' ERR; f() { false; }; f; (false); x=$(false); echo end)
(set -u; echo "${undefined-default}"; echo $undefined; echo no) 2>/dev/null; echo $?
