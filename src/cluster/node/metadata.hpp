// What EC2 tells a machine about itself (IMDSv2).
#pragma once

#include <optional>
#include <string>

namespace dtrain::cluster {

class Metadata {
 public:
  // Throws RemoteError when there is no such service.
  Metadata();
  std::optional<std::string> find(const std::string& path) const;  // below /latest/; nullopt: it is not there
  std::string get(const std::string& path) const;                  // RemoteError: it is not there

 private:
  std::string base_, token_;
};

}  // namespace dtrain::cluster
