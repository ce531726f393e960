package archive

import "github.com/paddock-sandbox/paddock/internal/driver/sim/proc"

func runZip(t *proc.Task) int   { t.Errorf("not yet"); return 2 }
func runUnzip(t *proc.Task) int { t.Errorf("not yet"); return 2 }
