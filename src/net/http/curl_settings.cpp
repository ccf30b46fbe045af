#include "curl_settings.hpp"

#include <filesystem>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::net {
namespace {

constexpr long kMaxRedirects = 10;

// Distributions keep the trusted certificates in different places and libcurl was built for one of them.
// Empty: libcurl's own.
std::string trusted_certificates(const std::string& chosen) {
  for (const std::string& path :
       {environment("AWS_CA_BUNDLE").value_or(""), chosen, environment("CURL_CA_BUNDLE").value_or(""),
        environment("SSL_CERT_FILE").value_or("")}) {
    if (!path.empty()) return path;
  }
  for (const char* path : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (std::filesystem::exists(path)) return path;
  }
  return {};
}

void allow_protocols(CURL* curl, const CurlAddress& address) {
  const bool only_https = starts_with_ignoring_case(address.url, "https:") && !address.redirects_to_http;
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, address.files ? "http,https,file" : "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, only_https ? "https" : "http,https");
#else
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS | (address.files ? CURLPROTO_FILE : 0));
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, only_https ? CURLPROTO_HTTPS : CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
}

}  // namespace

void set_common_options(CURL* curl, const CurlAddress& address) {
  curl_easy_setopt(curl, CURLOPT_URL, address.url.c_str());
  allow_protocols(curl, address);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
  // Without it the end of a transfer, a deadline too, waits for the thread that resolves the name.
  curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
#endif
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "dtrain/" DTRAIN_VERSION);
  const std::string trusted = trusted_certificates(address.ca_bundle);
  if (!trusted.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, trusted.c_str());
}

bool is_untrusted(CURLcode code) { return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE; }

void follow_redirects(CURL* curl) {
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMaxRedirects);
}

void set_callbacks(CURL* curl, const CurlCallbacks& callbacks, void* state) {
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, callbacks.header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, state);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, callbacks.body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, state);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, callbacks.progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, state);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
}

}  // namespace dtrain::net
