// Where the requests for a URL go: the bucket's host and region, and what is learnt about them from redirects.
#pragma once

#include <map>
#include <string>

#include <dtrain/base/mutex.hpp>
#include <dtrain/net/objects.hpp>

namespace dtrain::net {

// Safe for concurrent use.
class ObjectPlaces {
 public:
  explicit ObjectPlaces(const AwsSettings& settings) : settings_(settings) {}
  // Method, headers and query are the caller's to add.
  AwsRequest request_for(const std::string& url);
  // Learns from a refusal where the bucket is. False: it says nothing new.
  [[nodiscard]] bool learn(const std::string& url, const AwsError::Facts& facts);

 private:
  struct Place {
    std::string region, endpoint;
    bool path_style = false;
  };
  Place place_of(const std::string& bucket);
  Place standard_place(const std::string& bucket, const std::string& region) const;

  const AwsSettings& settings_;
  Mutex mutex_;
  std::map<std::string, Place> places_ DTRAIN_GUARDED_BY(mutex_);  // by bucket
};

}  // namespace dtrain::net
