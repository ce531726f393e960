// This file lets compile.go declare functions of other packages without a body.
