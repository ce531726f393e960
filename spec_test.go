package paddock_test

import (
	"reflect"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestAForkInheritsTheLimitsThatItDoesNotSet(t *testing.T) {
	full := paddock.Limits{Memory: 1, CPUs: 2, PIDs: 3, Disk: 4, Files: 5, IO: 6, Lifetime: 7}
	weak := []paddock.Finding{{Control: paddock.ControlMemory, Strength: paddock.Weak}, {Control: paddock.ControlIO}, {Control: paddock.ControlPIDs, Strength: paddock.Full}}
	for what, row := range map[string]struct {
		spec, want paddock.Spec
		origin     paddock.Status
		accept     bool
	}{
		"all of them": {
			origin: paddock.Status{Limits: full}, want: paddock.Spec{Limits: full},
		},
		"none": {
			spec:   paddock.Spec{Limits: paddock.Limits{Memory: 10, CPUs: 20, PIDs: 30, Disk: 40, Files: 50, IO: 60, Lifetime: 70}},
			origin: paddock.Status{Limits: full, Enforced: weak}, accept: true,
			want: paddock.Spec{Limits: paddock.Limits{Memory: 10, CPUs: 20, PIDs: 30, Disk: 40, Files: 50, IO: 60, Lifetime: 70}},
		},
		"with their weakness": {
			spec:   paddock.Spec{AllowMissing: []paddock.Control{paddock.ControlIO}},
			origin: paddock.Status{Limits: full, Enforced: weak}, accept: true,
			want: paddock.Spec{Limits: full, AllowMissing: []paddock.Control{paddock.ControlIO, paddock.ControlMemory}},
		},
		"without weakness": {
			origin: paddock.Status{Limits: full, Enforced: weak},
			want:   paddock.Spec{Limits: paddock.Limits{CPUs: 2, PIDs: 3, Disk: 4, Files: 5, Lifetime: 7}},
		},
		"no limit where the origin has none": {
			origin: paddock.Status{Limits: paddock.Limits{PIDs: 3}, Enforced: weak}, accept: true,
			want: paddock.Spec{Limits: paddock.Limits{PIDs: 3}},
		},
	} {
		got := row.spec
		got.InheritLimits(row.origin, row.accept)
		if !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v, want %+v", what, got, row.want)
		}
	}
}
