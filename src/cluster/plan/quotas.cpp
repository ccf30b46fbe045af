#include <dtrain/cluster/account.hpp>

namespace dtrain::cluster {
namespace {

struct Family {
  std::string_view begin, quota;
};
// In this order: "p" is also the beginning of no other family with GPUs.
constexpr Family kFamilies[] = {{"g", "gpu-g"}, {"vt", "gpu-g"}, {"p", "gpu-p"}, {"trn", ""}, {"inf", ""},
                                {"dl", ""},     {"hpc", ""},     {"u-", ""},     {"x", ""},   {"f", ""}};

}  // namespace

std::string quota_of(const std::string& type) {
  for (const Family& family : kFamilies) {
    if (type.starts_with(family.begin)) return std::string(family.quota);
  }
  return "standard";
}

}  // namespace dtrain::cluster
