// What a machine of a cluster is told to do when it first boots: a POSIX shell script that EC2 hands to it as its user
// data. Anybody on the machine, and whoever may describe it, can read that, so there is no secret in it: a node proves
// who it is by its identity document (cluster/admission.hpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <dtrain/base/json.hpp>

namespace dtrain::cluster {

// Where everything of dtrain lies on a node, and the port where its head answers.
inline constexpr const char* kNodeFolder = "/opt/dtrain";
inline constexpr std::uint16_t kHeadPort = 7171;
// What EC2 takes, before base64.
inline constexpr std::size_t kMostUserData = 16 << 10;

struct SharedFolder {
  enum class Kind { none, efs, path };  // path: the image mounts it by itself
  Kind kind = Kind::none;
  std::string file_system{};   // efs: "fs-0123456789abcdef0"
  std::string mount_target{};  // efs: a numeric address to mount where its name cannot be resolved; may be empty
  std::string folder = "/myEFSvolume";  // where it is mounted; empty only for `none`
};

struct NodeBoot {
  enum class Role { head, worker };
  std::string cluster;
  Role role = Role::worker;
  std::string head_address{};    // numeric, private; empty on the head, which is its own
  bool head_only = false;        // the head: takes no part in training
  std::string bundle_sha256;     // of the file that the head serves; lower-case hex
  std::string login = "ubuntu";  // the image's user, whose programs run; root where the image has no such user
  std::string region;
  SharedFolder shared{};
  std::string prepare{};  // for `sh -c`, as root in the shared folder; empty: none
  std::chrono::seconds prepare_deadline{3'600};
  std::chrono::seconds boot_deadline{1'800};  // until the bundle is here; a head waits so long for the upload
  std::chrono::seconds time_to_live{0};       // after that the node powers off, whatever else happens; 0: never
  std::chrono::seconds autostop{0};           // the node powers off once it was idle for so long; 0: never
  bool keep_failed = false;                   // a node that failed stays on, to be looked at
  // The resolved specification of the whole cluster: spec_in() gives it back. Never a secret.
  Json spec{};
};

// At most kMostUserData bytes, the same for the same NodeBoot. UsageError: it would be longer (a long prepare command
// belongs into a file of the shared folder), or the hash is none.
std::string user_data(const NodeBoot& boot);
// The specification in a script that user_data() made; nullopt: there is none. DataError: it is damaged.
std::optional<Json> spec_in(std::string_view script);

}  // namespace dtrain::cluster
