//go:build linux

package filter

import _ "embed"

//go:embed programs-arm64.gz
var compressed []byte
