// The coordinator's record of signs of life from its agents. Used by the loop's thread only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <dtrain/elastic/policy.hpp>
#include <dtrain/elastic/voters.hpp>

namespace dtrain::elastic {

class Contacts {
 public:
  // A fresh agent has never followed a coordinator and cannot have voted for another one, so it counts as answering.
  void add(const Voter& agent, bool fresh, Time now) {
    hosts_[agent.host] = {.agent = agent, .heard = now, .answered = fresh ? now : Time{}};
  }
  void remove(const std::string& host) { hosts_.erase(host); }
  void heard(const std::string& host, Time now);

  // The connected voters among the hosts of these members, in the order of their first member.
  std::vector<Voter> voters_of(const std::vector<Member>& members) const;

  // Number of the sign of life that is sent to all agents now.
  std::uint64_t beat(Time now);
  // The host answered it, so it voted for no other coordinator before `beat` was sent.
  void answered(const std::string& host, std::uint64_t beat);

  // Hosts that were silent for so long; time during which this process itself was held up does not count. Where all of
  // several hosts are silent, what they share is to blame, such as a file server that hangs: they have longer.
  std::vector<std::string> silent(Duration limit, Time now) const;
  // Number of these hosts that have answered a sign of life sent after `since`.
  std::size_t answered_since(const std::vector<std::string>& hosts, Time since) const;

 private:
  struct Host {
    Voter agent{};
    Time heard{};
    Time answered{};  // send time of the newest beat that it answered
  };
  std::vector<std::string> silent_for(Duration limit, Time now) const;

  std::map<std::string, Host> hosts_;
  std::map<std::uint64_t, Time> sent_;
  std::uint64_t next_beat_ = 1;
  Time last_beat_{}, floor_{};
};

}  // namespace dtrain::elastic
