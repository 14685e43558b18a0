/**
 * Commands to copy and paste: create a code, scan it, download its image and see the scan. `url`: where the REST API
 * and scans are served, without a slash at the end.
 */
export function session(url: string, apiKey: string): string {
  const api = `${url}/api/v1`;
  return `Create a code, scan it, download its image and see the scan:

  KEY=${apiKey}
  CODE=$(curl -s ${api}/qr-codes -H "Authorization: Bearer $KEY" -d '{"target_url": "https://example.com/menu"}')
  ID=$(echo "$CODE" | grep -o 'qr_[0-9a-z]*' | head -1)
  SCAN_URL=$(echo "$CODE" | grep -o 'http[^"]*/r/[0-9A-Za-z]*')
  curl -i "$SCAN_URL"
  curl -s ${api}/qr-codes/$ID/image -H "Authorization: Bearer $KEY" -o code.png
  sleep 2
  curl -s ${api}/qr-codes/$ID/analytics -H "Authorization: Bearer $KEY"
`;
}
