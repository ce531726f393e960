package sentry

import "github.com/paddock-sandbox/paddock/internal/container/inner"

var hostileSocket = inner.State + "/hostile"

const controlVariable = "PADDOCK_SENTRY_CONTROL"

type occupied struct{ sentry }

func occupy()       {}
func withoutWalls() {}
