// Settings that every use of libcurl shares.
#pragma once

#include <curl/curl.h>

#include <exception>
#include <memory>
#include <string>

#include <dtrain/base/releaser.hpp>

namespace dtrain::net {

struct CurlAddress {
  const std::string& url;
  bool files = false;              // file:// is a URL too
  bool redirects_to_http = false;  // also from https://, for what is checked by its hash
  std::string ca_bundle{};         // the user's choice of trusted certificates behind AWS_CA_BUNDLE; empty: none
};

// The URL and the protocols that it may use, the user agent, the trusted certificates, no signals, and deadlines that
// hold while the name is resolved (libcurl 7.87 and later).
void set_common_options(CURL* curl, const CurlAddress& address);
bool is_untrusted(CURLcode code);   // the server's certificate is not, or the trusted ones cannot be read
void follow_redirects(CURL* curl);  // a few, as far as the address allows

using CurlHandle = std::unique_ptr<CURL, Releaser<curl_easy_cleanup>>;
using HeaderList = std::unique_ptr<curl_slist, Releaser<curl_slist_free_all>>;

// Functions that libcurl calls with `state` as their last argument. They must not throw through C code: what may throw
// runs in keep_exception().
struct CurlCallbacks {
  curl_write_callback header, body;
  curl_xferinfo_callback progress;  // not 0: ends the transfer
};
void set_callbacks(CURL* curl, const CurlCallbacks& callbacks, void* state);

// False: act() threw. `thrown` keeps the exception until curl has returned.
template <typename Act>
bool keep_exception(std::exception_ptr& thrown, const Act& act) {
  try {
    act();
    return true;
  } catch (...) {
    thrown = std::current_exception();
    return false;
  }
}

}  // namespace dtrain::net
