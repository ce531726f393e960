package attack

import (
	"errors"

	"github.com/paddock-sandbox/paddock/attack/target"
)

func (x *trial) changeScripts() []target.Try {
	return []target.Try{broken("scripts", errors.New("not yet"))}
}
