// Settings that every use of libcurl shares.
#pragma once

#include <curl/curl.h>

#include <memory>

#include <dtrain/base/releaser.hpp>

namespace dtrain::net {

// Protocols (file:// only with `files`), the user agent, the trusted certificates, and no signals.
void set_common_options(CURL* curl, bool files = false);
// Follows a few redirects of a request for this URL; those of an https URL lead to https only.
void follow_redirects(CURL* curl, const std::string& url);

using CurlHandle = std::unique_ptr<CURL, Releaser<curl_easy_cleanup>>;
using HeaderList = std::unique_ptr<curl_slist, Releaser<curl_slist_free_all>>;

// Functions that libcurl calls with `state` as their last argument. They must not throw through C code.
struct CurlCallbacks {
  curl_write_callback header, body;
  curl_xferinfo_callback progress;  // not 0: ends the transfer
};
void set_callbacks(CURL* curl, const CurlCallbacks& callbacks, void* state);

}  // namespace dtrain::net
