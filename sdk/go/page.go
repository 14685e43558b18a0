package signpost

import (
	"iter"
	"net/url"
	"strconv"
)

// Page is a part of a list.
type Page[T any] struct {
	Items []T
	// Total of all items that match; on pages by cursor, from this page onwards.
	Total int
	// Limit is the page size used.
	Limit int
	// NextCursor is the Cursor of the next page; empty on the last page, and in lists without cursors.
	NextCursor string
}

// used is the offset that the service has used: 0 if a negative one was requested.
func (p CursorPagination) used(requested int) int {
	if p.Offset == nil {
		return requested
	}
	return *p.Offset
}

// items iterates over all pages; next reads the page after one, or the first after nil, and returns nil at the end.
func items[T any](next func(*Page[T]) (*Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var page *Page[T]
		for {
			following, err := next(page)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			if following == nil {
				return
			}
			for _, item := range following.Items {
				if !yield(item, nil) {
					return
				}
			}
			page = following
		}
	}
}

// setUnlessZero adds a number to a query.
func setUnlessZero(query url.Values, name string, number int) {
	if number != 0 {
		query.Set(name, strconv.Itoa(number))
	}
}
