package paddock

import "context"

// As returns the outermost layer of v that has the methods of T. v is a [Driver] or a
// [Sandbox]. Its layers are v itself, the result of its Unwrap method, and so on. The
// package comment says which layers have an Unwrap method.
func As[T any](v any) (T, bool) {
	for {
		if t, ok := v.(T); ok {
			return t, true
		}
		switch layer := v.(type) {
		case interface{ Unwrap() Driver }:
			v = layer.Unwrap()
		case interface{ Unwrap() Sandbox }:
			v = layer.Unwrap()
		default:
			var none T
			return none, false
		}
	}
}

// FirstStatus returns the status of a sandbox that Create has just returned. It calls
// Status only if the driver captured none.
func FirstStatus(ctx context.Context, sb Sandbox) (Status, error) {
	if st, ok := sb.Born(); ok {
		return st, nil
	}
	return sb.Status(ctx)
}
