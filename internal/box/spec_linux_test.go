package box

import (
	"errors"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestATooLargeEnvironmentIsRefusedInWords(t *testing.T) {
	large := func(n int) map[string]string {
		return map[string]string{"A": strings.Repeat("x", n/2-1), "B": strings.Repeat("x", n-n/2-1)}
	}
	if err := checkEnv(large(paddock.MaxEnv)); err != nil {
		t.Errorf("the largest one: %v", err)
	}
	err := checkEnv(large(300 << 10))
	if !errors.Is(err, paddock.Invalid) || !strings.Contains(err.Error(), "the environment has 307200 bytes, but the maximum is 262144") {
		t.Errorf("300 KiB: %v", err)
	}
}
