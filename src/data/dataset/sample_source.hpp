// A published data set as a stream of labelled images, whatever its files look like.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <dtrain/data/prepare.hpp>

namespace dtrain::data {

enum class Split : std::uint32_t { train = 0, val = 1 };

class SampleSource {
 public:
  using Take = std::function<bool(std::uint8_t label, const Image& image)>;  // false: enough

  virtual ~SampleSource() = default;
  virtual std::uint64_t count(Split split) const = 0;
  // Calls take for every sample in the set's fixed order. Throws DataError naming file and byte of a wrong one.
  virtual void for_each(Split split, const Take& take) const = 0;
};

// They find, fetch and check the files of the set; see PrepareOptions::from.
std::unique_ptr<SampleSource> open_cifar10(const PrepareOptions& options);
std::unique_ptr<SampleSource> open_mnist(const PrepareOptions& options);
std::unique_ptr<SampleSource> open_fashion_mnist(const PrepareOptions& options);
std::unique_ptr<SampleSource> open_shapes(const PrepareOptions& options);

}  // namespace dtrain::data
