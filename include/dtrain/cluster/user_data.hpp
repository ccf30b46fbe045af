// The script of a cluster's machine for its first boot: a POSIX shell script that EC2 passes as user data. Users of the
// machine, and identities that may describe it in the account, can read it. Its only secret is the admission secret,
// which proves nothing alone (cluster/admission.hpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <dtrain/base/json.hpp>

namespace dtrain::cluster {

// The folder of dtrain on a node, and the port of its head.
inline constexpr const char* kNodeFolder = "/opt/dtrain";
inline constexpr std::uint16_t kHeadPort = 7171;
// The port of the head that admits nodes: below 1024, so that only root of the head can answer there.
inline constexpr std::uint16_t kAdmissionPort = 717;
// The limit of EC2, before base64.
inline constexpr std::size_t kMostUserData = 16 << 10;

struct SharedFolder {
  enum class Kind { none, efs, lustre, path };  // path: mounted by the image
  Kind kind = Kind::none;
  std::string file_system{};            // efs, lustre: "fs-0123456789abcdef0"
  std::string mount_name{};             // lustre
  std::string mount_target{};           // efs: a numeric address, used where the name stays unknown; may be empty
  std::string folder = "/myEFSvolume";  // mount point; empty only for `none`
};

struct NodeBoot {
  enum class Role { head, worker };
  std::string cluster;
  Role role = Role::worker;
  std::string head_address{};    // numeric, private; empty on the head itself
  bool head_only = false;        // true: the head takes no part in training
  std::string admission;         // the admission secret of the cluster; lower-case hex
  std::string bundle_sha256;     // of the file that the head serves; lower-case hex
  std::string login = "ubuntu";  // the image's user, who runs the programs; root if the image has no such user
  std::string region;
  SharedFolder shared{};
  std::string prepare{};  // command for `sh -c`, as root in the shared folder; empty: none
  std::chrono::seconds prepare_deadline{3'600};
  std::chrono::seconds boot_deadline{1'800};   // until the bundle has arrived; on the head, until it is uploaded
  std::chrono::seconds time_to_live{0};        // after this time the node powers off in any case; 0: never
  std::chrono::seconds autostop{0};            // the node powers off after being idle for this time; 0: never
  bool heal = false;                           // true: the head keeps the cluster as it is wanted
  std::chrono::seconds replace_head_after{0};  // how long EC2 shows no head before a worker starts one; 0: none does
  bool keep_failed = false;                    // true: a node whose boot failed stays on for inspection
  bool adopted = false;                        // true: dtrain did not start this machine, and never powers it off
  // The resolved specification of the whole cluster; spec_in() reads it back.
  Json spec{};
};

// The script: at most kMostUserData bytes, and the same for the same NodeBoot. Throws UsageError if it would be longer
// (a long prepare command belongs in a file of the shared folder) or if the hash is invalid.
std::string user_data(const NodeBoot& boot);
// The specification in a script that user_data() made; nullopt: there is none. Throws DataError if it is damaged.
[[nodiscard]] std::optional<Json> spec_in(std::string_view script);

}  // namespace dtrain::cluster
