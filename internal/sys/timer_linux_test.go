package sys_test

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

func TestTimersOfThreadsThatAreMadeMeanwhileAreRelaxedToo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may relax the timers of other threads")
	}
	defer func() {
		if err := sys.RelaxTimers(sys.UsualSlack); err != nil {
			t.Error(err)
		}
	}()
	const slack = 3 * time.Millisecond
	begun, stop := make(chan struct{}), make(chan struct{})
	var threads sync.WaitGroup
	for i := range 40 { // each needs a thread, which another one makes
		threads.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if i == 0 {
				close(begun)
			}
			<-stop
		})
	}
	<-begun
	err := sys.RelaxTimers(slack)
	close(stop)
	threads.Wait()
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile("/proc/" + task.Name() + "/timerslack_ns")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) { // a thread that ended
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(text)); got != strconv.Itoa(int(slack)) {
			t.Errorf("thread %s of %d: %s ns", task.Name(), len(tasks), got)
		}
	}
}
