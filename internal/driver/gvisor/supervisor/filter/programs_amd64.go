//go:build linux

package filter

import _ "embed"

//go:embed programs-amd64.gz
var compressed []byte
