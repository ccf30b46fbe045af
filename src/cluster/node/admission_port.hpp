// The port of the head for machines that know the admission secret and ask for the cluster's token: one question and
// one answer for each connection. Everything runs on the loop's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <dtrain/base/json.hpp>
#include <dtrain/net/channel.hpp>
#include <dtrain/net/connection_quota.hpp>

namespace dtrain::cluster {

class AdmissionPort {
 public:
  // Answers a claim from this numeric address. Throws DataError for a damaged one.
  using Answer = std::function<Json(const Json& claim, const std::string& peer)>;
  // The loop must outlive it. Throws Error if the port cannot be bound, which takes root.
  AdmissionPort(net::Loop& loop, const std::string& bind_address, const std::string& secret, Answer answer);

 private:
  using Key = net::Channel*;
  void meet(const std::shared_ptr<net::Channel>& channel);
  void hear(Key key, const std::string& frame);
  void reply(net::Channel& channel, const Json& answer);
  void drop(Key key);

  net::Loop& loop_;
  const Answer answer_;
  net::ConnectionQuota quota_;
  std::map<Key, std::shared_ptr<net::Channel>> open_;  // those that have not asked yet
  net::Listener listener_;
};

}  // namespace dtrain::cluster
