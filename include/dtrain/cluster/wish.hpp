// What a cluster is to be at any moment, as tags of its security group: how many workers, who keeps it so, and what was
// done for it. Every machine that may read the tags finds them, also after the loss of the head.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/cluster/fleet.hpp>

namespace dtrain::cluster {

namespace tag {
inline constexpr const char* kWish = "dtrain:wish";      // on the security group: wish_text()
inline constexpr const char* kHealer = "dtrain:healer";  // on the security group: lease_text()
inline constexpr const char* kEvent = "dtrain:event:";   // on the security group, before a slot's number: event_text()
inline constexpr const char* kLeft = "dtrain:left";  // on a worker that left on purpose: "yes", it left the wish too
inline constexpr const char* kHealed = "dtrain:healed";  // on a worker that a reconciler started: "yes"
}  // namespace tag

struct Wish {
  int base = 0, elastic = 0;       // workers that `up` and that `add` started
  std::optional<double> budget{};  // US dollars for its machines; nullopt: no limit
  int workers() const { return base + elastic; }
  friend bool operator==(const Wish&, const Wish&) = default;
};
std::string wish_text(const Wish& wish);
// Throws DataError for a text that is no wish, has unknown keys, or is of a newer schema.
Wish wish_from(const std::string& text);
// The tagged wish. nullopt: there is none, as for clusters of earlier versions. Throws as wish_from().
[[nodiscard]] std::optional<Wish> tagged_wish(const Fleet& fleet);
// Changes the wish as AWS shows it at this moment, because a fleet may have been read long before: another command may
// have changed another part of it since. Writes it where that makes a difference, and returns it. `first`: of a cluster
// without one; nullopt: nothing is written for such a cluster. Throws as tagged_wish().
std::optional<Wish> change_wish(net::AwsCalls& aws, const Fleet& fleet, const std::optional<Wish>& first,
                                const std::function<void(Wish&)>& change);
// The wish of a cluster without one: the workers that its options name, and the elastic ones that it has.
Wish wish_without_tag(const Fleet& fleet, int workers);

// Which reconciler acts. Others watch, and take over when it has been silent for kLeaseTime: long enough for AWS to
// show the machines that it asked for last.
using UnixTime = std::chrono::seconds;
inline constexpr std::chrono::seconds kLeaseTime{120};
inline constexpr std::chrono::seconds kRenewAfter{50};
struct Lease {
  std::string holder{};  // no blanks; empty: none
  UnixTime at{0};        // when it was last written
};
std::string lease_text(const Lease& lease);
Lease lease_from(const std::string& text);  // a text that is none: no holder
Lease tagged_lease(const Fleet& fleet);

enum class LeaseState {
  mine,   // act
  free,   // write it, wait until AWS shows it, and look again
  taken,  // another one acts
};
// AWS's clock: machines that keep a cluster compare what they write.
UnixTime aws_time(const net::AwsCalls& aws);
LeaseState lease_state(const Lease& lease, const std::string& me, UnixTime now);

// The latest decisions of reconcilers, for `cluster events`.
inline constexpr int kKeptEvents = 12;
struct HealEvent {
  UnixTime at{0};
  std::string text{};
  friend bool operator==(const HealEvent&, const HealEvent&) = default;
};
std::vector<HealEvent> tagged_events(const Fleet& fleet);  // the oldest first
// The tags that store these events instead of the oldest ones. At most kKeptEvents of them, the latest, are kept. An
// event that repeats the text of the latest ones is not stored.
Tags event_tags(const Fleet& fleet, std::vector<HealEvent> fresh);

// Whether the user had this worker removed (`cluster remove`, or its elastic tag), and the wish still counts it.
bool left_on_purpose(const Node& node);
bool leaves_on_purpose(const Node& node);  // the same, whether or not the wish still counts it

}  // namespace dtrain::cluster
