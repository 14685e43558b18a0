package signpost

import (
	"encoding/json"
	"reflect"
)

// Optional is a field of a change: absent (the zero value, which leaves the field as it is), null or a value.
type Optional[T any] struct {
	value *T
	set   bool
}

// Set changes a field to a value.
func Set[T any](value T) Optional[T] { return Optional[T]{value: &value, set: true} }

// Clear changes a field to null, which only Name and Folder can be: signpost.UpdateCodeRequest{Folder: signpost.Clear[string]()}.
func Clear[T any]() Optional[T] { return Optional[T]{set: true} }

// IsZero reports whether the field is absent.
func (o Optional[T]) IsZero() bool { return !o.set }

// MarshalJSON writes the value or null. A nil slice is an empty list.
func (o Optional[T]) MarshalJSON() ([]byte, error) {
	if o.value != nil {
		if value := reflect.ValueOf(*o.value); value.Kind() == reflect.Slice && value.IsNil() {
			return []byte("[]"), nil
		}
	}
	return json.Marshal(o.value)
}
