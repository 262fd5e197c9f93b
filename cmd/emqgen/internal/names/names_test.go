package names

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A kind lives in stored jobs: a change in this table breaks jobs that wait.
func TestKindsOfTypeNames(t *testing.T) {
	want := map[string]string{
		"SendWelcome": "send_welcome", "HTTPGet": "http_get", "SyncURLs": "sync_urls", "OAuth2Token": "oauth2_token",
		"A": "a", "AB": "ab", "ABTest": "ab_test", "PDF": "pdf", "UserIDs": "user_ids", "URLsOfUser": "urls_of_user",
		"X509Cert": "x509_cert", "Send2FA": "send_2fa", "HTTPServer2FA": "http_server_2fa", "Verify2FACode": "verify_2fa_code",
		"Model3DRender": "model_3d_render", "S3Download": "s3_download", "EC2DNSSync": "ec2_dns_sync", "OAuth2Login": "oauth2_login", "IPv6Check": "ipv6_check", "GitHubPull": "github_pull",
		"GitHubs": "git_hubs", "MySQLDump": "mysql_dump", "Snake_Case": "snake_case", "SMSes": "sm_ses", "Öl": "öl", "V2": "v2",
	}
	got := map[string]string{}
	for name := range want {
		got[name] = Kind(name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGoNamesOfQueues(t *testing.T) {
	want := map[string]string{
		"video-transcode": "VideoTranscode", "default": "Default", "http": "HTTP", "user_id.sync": "UserIDSync",
		"2fa": "2fa", "...": "", "Mail": "Mail", "a--b": "AB",
	}
	got := map[string]string{}
	for name := range want {
		got[name] = Ident(name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestArticlesAreAsSpoken(t *testing.T) {
	want := map[string]string{
		"Send": "a", "Email": "an", "User": "a", "Upload": "an", "HTTPGet": "an", "URLFetch": "a", "Once": "a", "A": "an", "SMS": "an",
	}
	got := map[string]string{}
	for name := range want {
		got[name] = Article(name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzKind(f *testing.F) {
	for _, s := range []string{"SendWelcome", "URLs", "ÖÄs", "_", "A_1_b"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) {
		Kind(s) // ends, and does not panic
	})
}
