package inside

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// A count bounds how many processes and threads commands have: a group of the
// kernel's own, which only the agent can reach. The host's kernel cannot do it,
// because it knows the kernel's processes only.
type count struct {
	max, now *os.File // pids.max, pids.current
}

// newCount makes the group at dir, for the calling thread and what it starts,
// and leaves dir covered.
func newCount(dir string) (*count, error) {
	if err := kernel.MountPIDs(dir); err != nil {
		return nil, err
	}
	group := dir + "/commands"
	if err := os.Mkdir(group, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(group+"/tasks", []byte(strconv.Itoa(kernel.Thread())), 0); err != nil {
		return nil, fmt.Errorf("join the group of processes: %w", err)
	}
	c := &count{}
	var err1, err2 error
	c.max, err1 = os.OpenFile(group+"/pids.max", os.O_WRONLY, 0)
	c.now, err2 = os.Open(group + "/pids.current")
	return c, errors.Join(err1, err2, kernel.MountEmpty(dir))
}

// bound sets how many there may be.
func (c *count) bound(n int) error {
	// One more: the thread that starts them.
	if _, err := c.max.WriteAt([]byte(strconv.Itoa(n+1)), 0); err != nil {
		return fmt.Errorf("bound the processes: %w", err)
	}
	return nil
}

// read tells how many there are.
func (c *count) read() (int, error) {
	buf := make([]byte, 32)
	n, err := c.now.ReadAt(buf, 0)
	if n == 0 && err != nil {
		return 0, err
	}
	now, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	return max(now-1, 0), err
}
