// What every use of libcurl sets alike.
#pragma once

#include <curl/curl.h>

namespace dtrain::net {

// Protocols, who we say we are, where trusted certificates are, and no signals.
void set_common_options(CURL* curl);

}  // namespace dtrain::net
