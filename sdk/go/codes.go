package signpost

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
)

// Codes are QR codes.
type Codes struct{ transport *transport }

// ListCodesParams selects codes.
type ListCodesParams struct {
	// Limit is the page size: 1 to 100; default 25.
	Limit int
	// Offset is the number of codes to skip. Ignored with Cursor.
	Offset int
	// Cursor continues where an earlier page ended.
	Cursor string
	// Folder is an id or a name; none: only codes without a folder.
	Folder string
	// Tags are ids or names: codes with any of them.
	Tags []string
}

// CreatedCode is a new code.
type CreatedCode struct {
	Code
	// Warnings has one sentence for each reason why a label could not be applied.
	Warnings []string
}

// ImageParams describes an image.
type ImageParams struct {
	// Format is png, the default, or svg.
	Format string
	// Size is the width and height of a PNG in pixels: 128 to 4,096; default 512.
	Size int
}

// List iterates over the codes of the account, newest first, and reads each page when it gets there.
func (c *Codes) List(ctx context.Context, params ListCodesParams) iter.Seq2[Code, error] {
	return items(func(page *Page[Code]) (*Page[Code], error) {
		following := params
		if page != nil {
			if page.NextCursor == "" {
				return nil, nil
			}
			following.Cursor = page.NextCursor
		}
		return c.Page(ctx, following)
	})
}

// Page reads one page of the codes.
func (c *Codes) Page(ctx context.Context, params ListCodesParams) (*Page[Code], error) {
	query := url.Values{"tag": params.Tags}
	setUnlessZero(query, "limit", params.Limit)
	setUnlessZero(query, "offset", params.Offset)
	for name, value := range map[string]string{"cursor": params.Cursor, "folder": params.Folder} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var body envelope[[]Code]
	if err := c.transport.json(ctx, request{method: http.MethodGet, path: "/qr-codes", query: query}, &body); err != nil {
		return nil, err
	}
	page := &Page[Code]{Items: body.Data, Total: body.Total, Limit: body.Pagination.Limit}
	if next := body.Pagination.NextCursor; next != nil {
		page.NextCursor = *next
	}
	return page, nil
}

// Create creates a dynamic code. It is safe to retry: see WithIdempotencyKey.
func (c *Codes) Create(ctx context.Context, code CreateCodeRequest, options ...CreateOption) (*CreatedCode, error) {
	var body envelope[Code]
	if err := c.transport.json(ctx, creation("/qr-codes", code, options), &body); err != nil {
		return nil, err
	}
	return &CreatedCode{body.Data, body.Warnings}, nil
}

// Get reads a code.
func (c *Codes) Get(ctx context.Context, id string) (*Code, error) {
	return read[*Code](ctx, c.transport, codePath(id), nil)
}

// Update changes the given fields alone. The print stays valid.
func (c *Codes) Update(ctx context.Context, id string, changes UpdateCodeRequest) (*Code, error) {
	var body envelope[*Code]
	err := c.transport.json(ctx, request{method: http.MethodPatch, path: codePath(id), body: changes}, &body)
	return body.Data, err
}

// Delete deletes a code: scans reach a "no longer active" page.
func (c *Codes) Delete(ctx context.Context, id string) error {
	answered, err := c.transport.send(ctx, request{method: http.MethodDelete, path: codePath(id)})
	// A 404: deleted by an attempt whose response was lost.
	if err != nil || answered.status == http.StatusNotFound {
		return err
	}
	var body envelope[DeletedCode]
	return answered.decode("data", &body)
}

// Analytics reads the scans of a code. Period: days of the breakdowns, 1 to 365; 0 stands for 30.
func (c *Codes) Analytics(ctx context.Context, id string, period int) (*Analytics, error) {
	query := url.Values{}
	setUnlessZero(query, "period", period)
	return read[*Analytics](ctx, c.transport, codePath(id)+"/analytics", query)
}

// Image returns the bytes of a PNG or SVG file.
func (c *Codes) Image(ctx context.Context, id string, params ImageParams) ([]byte, error) {
	query := url.Values{}
	if params.Format != "" {
		query.Set("format", params.Format)
	}
	setUnlessZero(query, "size", params.Size)
	answered, err := c.transport.send(ctx, request{method: http.MethodGet, path: codePath(id) + "/image", query: query})
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(answered.header.Get("Content-Type"), "image/") {
		return nil, fmt.Errorf("signpost: the response is not that of the API (HTTP %d): it is not an image", answered.status)
	}
	return answered.content, nil
}

func codePath(id string) string { return "/qr-codes/" + url.PathEscape(id) }
