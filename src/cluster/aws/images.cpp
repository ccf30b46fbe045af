#include "images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "ec2_fields.hpp"

namespace dtrain::cluster {
namespace {

// Parameters by which AWS and Canonical publish their newest images.
struct Known {
  const char* image;
  bool gpus;
  const char* parameter;
};
constexpr Known kKnown[] = {
    {"ubuntu", false, "/aws/service/canonical/ubuntu/server/22.04/stable/current/amd64/hvm/ebs-gp2/ami-id"},
    {"ubuntu", true, "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"},
    {"amazon-linux", false, "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"},
    {"amazon-linux", true,
     "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id"}};

std::string id_of(net::AwsCalls& aws, const std::string& image, bool gpus) {
  if (image.starts_with("ami-")) return image;
  const auto known =
      std::ranges::find_if(kKnown, [&](const Known& one) { return image == one.image && gpus == one.gpus; });
  if (known == std::end(kKnown)) {
    throw UsageError(fmt::format("setting 'image' {} is neither ubuntu, amazon-linux nor an id", image),
                     "an id begins with ami-");
  }
  const Json answer = aws.json(net::kSsm, "GetParameter", Json::object({{"Name", known->parameter}}));
  return net::read_answer("ssm GetParameter", [&] { return answer.at("Parameter").at("Value").as_string(); });
}

std::string login_of(const std::string& image, const std::string& name) {
  const auto has = [&](const char* word) {
    return std::ranges::search(name, std::string_view(word), [](char a, char b) {
             return std::tolower(a) == b;
           }).size() > 0;
  };
  return image == "ubuntu" || (image != "amazon-linux" && has("ubuntu")) ? "ubuntu" : "ec2-user";
}

}  // namespace

Image find_image(net::AwsCalls& aws, const Spec& spec, bool gpus) {
  const std::string id = id_of(aws, spec.image, gpus);
  Fields fields;
  add_list(fields, "ImageId", {id});
  const auto found = aws.query_all(net::kEc2, "DescribeImages", fields, "imagesSet");
  if (found.empty()) {
    throw UsageError(fmt::format("region {} has no image {}", aws.region(), id), "image ids differ between regions");
  }
  const net::Element& one = found.front();
  Image image{.id = id,
              .name = one.value("name"),
              .root_device = one.value("rootDeviceName"),
              .architecture = one.value("architecture")};
  for (const net::Element& disk : one.list("blockDeviceMapping")) {
    if (disk.value("deviceName") != image.root_device) continue;
    image.disk_gb = static_cast<int>(parse_integer(disk.at("ebs").value("volumeSize")).value_or(0));
  }
  image.login = login_of(spec.image, image.name);
  if (image.architecture != "x86_64") {
    throw UsageError(fmt::format("image {} is of architecture {}, and dtrain runs on x86_64", id, image.architecture),
                     "choose another setting 'image'");
  }
  return image;
}

}  // namespace dtrain::cluster
