// Package signpost is a client of the Signpost API: dynamic QR codes, printed once, with a target that can be changed at
// any time.
package signpost

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Client calls the API with one key. Goroutines may share it.
type Client struct {
	Codes   *Codes
	Batches *Batches

	transport *transport
}

// Option changes how a Client works.
type Option func(*transport)

// WithBaseURL sets the address of the service, without /api/v1. Default: the variable SIGNPOST_BASE_URL.
func WithBaseURL(address string) Option {
	return func(t *transport) { t.base = address }
}

// WithHTTPClient replaces the default HTTP client, for example to go through a proxy. Redirects are not followed, whatever
// its CheckRedirect says.
func WithHTTPClient(client *http.Client) Option {
	return func(t *transport) { t.http = withoutRedirects(*client) }
}

// WithTimeout limits each attempt, unless it is 0. Default: 60 seconds, because a batch may be answered after 20.
func WithTimeout(timeout time.Duration) Option {
	return func(t *transport) { t.timeout = timeout }
}

// WithRetries sets how often a request is repeated that failed and may succeed (default: 4), and the longest wait before
// a repetition (default: a minute). A longer Retry-After is an error at once. Unless most is 0, a creation that is still
// being carried out is awaited in addition, for up to 30 seconds, whatever the longest wait.
func WithRetries(most int, longest time.Duration) Option {
	return func(t *transport) { t.maxRetries, t.maxDelay = most, longest }
}

// New prepares a client. An empty key stands for the variable SIGNPOST_API_KEY.
func New(apiKey string, options ...Option) (*Client, error) {
	t := &transport{
		key:        apiKey,
		base:       os.Getenv("SIGNPOST_BASE_URL"),
		http:       withoutRedirects(http.Client{}),
		timeout:    time.Minute,
		maxRetries: 4,
		maxDelay:   time.Minute,
	}
	for _, option := range options {
		option(t)
	}
	if t.key == "" {
		t.key = os.Getenv("SIGNPOST_API_KEY")
	}
	if t.key == "" {
		return nil, errors.New("signpost: an API key is required: pass it, or set SIGNPOST_API_KEY")
	}
	if !isVisible(t.key) {
		return nil, errors.New("signpost: the API key must consist of visible ASCII characters")
	}
	if t.base == "" {
		return nil, errors.New("signpost: an address is required: use WithBaseURL, or set SIGNPOST_BASE_URL")
	}
	if address, err := url.Parse(t.base); err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" || address.User != nil {
		return nil, errors.New("signpost: the address must be an http or https URL, without user name and password")
	}
	t.base = strings.TrimRight(t.base, "/") + "/api/v1"
	return &Client{Codes: &Codes{t}, Batches: &Batches{t}, transport: t}, nil
}

// withoutRedirects returns a client that returns redirects: to follow one could send the key elsewhere, and after a 301 or
// 302, a deletion or change would be sent as a GET, whose success would be taken for its own.
func withoutRedirects(client http.Client) *http.Client {
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// Folders lists all folders by name. A folder is created by naming it on a code.
func (c *Client) Folders(ctx context.Context) ([]Folder, error) {
	return read[[]Folder](ctx, c.transport, "/folders", nil)
}

// Tags lists all tags by name. A tag is created by naming it on a code.
func (c *Client) Tags(ctx context.Context) ([]Tag, error) {
	return read[[]Tag](ctx, c.transport, "/tags", nil)
}

// OpenAPI returns the OpenAPI document of the service, in JSON.
func (c *Client) OpenAPI(ctx context.Context) ([]byte, error) {
	answered, err := c.transport.send(ctx, request{method: http.MethodGet, path: "/openapi"})
	if err != nil {
		return nil, err
	}
	if err := answered.decode("openapi", &struct{}{}); err != nil {
		return nil, err
	}
	return answered.content, nil
}

// envelope is the body of a response.
type envelope[T any] struct {
	Data       T                `json:"data"`
	Warnings   []string         `json:"warnings"`
	Pagination CursorPagination `json:"pagination"`
	Total      int              `json:"total"`
}

// read returns the data of a GET.
func read[T any](ctx context.Context, t *transport, path string, query url.Values) (T, error) {
	var body envelope[T]
	err := t.json(ctx, request{method: http.MethodGet, path: path, query: query}, &body)
	return body.Data, err
}
