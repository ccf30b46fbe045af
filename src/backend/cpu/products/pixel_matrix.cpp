#include "pixel_matrix.hpp"

#include <cstring>

namespace dtrain::backend::cpu {
namespace {

// Calls use(pixel of all, pixel of those in use) in order; both are counted in samples' pixels.
template <typename Use>
void each_used_pixel(const Product& p, int count, Use use) {
  const nn::Convolution& c = p.convolution;
  std::int64_t used = 0;
  for (int sample = 0; sample < count; ++sample) {
    for (int y = 0; y < p.out.h; ++y) {
      const std::int64_t row = (std::int64_t{sample} * p.in.h + y * c.stride_h) * p.in.w;
      for (int x = 0; x < p.out.w; ++x) use(row + x * c.stride_w, used++);
    }
  }
}

std::size_t pixel_bytes(const Product& p) { return static_cast<std::size_t>(p.in.c) * sizeof(std::uint16_t); }

std::size_t offset(std::int64_t pixel, std::size_t bytes) { return static_cast<std::size_t>(pixel) * bytes; }

}  // namespace

bool multiplies_matrices(const Product& p, const CpuModel& cpu, int onednn_major) {
  const nn::Convolution& c = p.convolution;
  const bool amx = p.dtype == DType::bfloat16 && cpu.has_amx_bf16;
  if (p.dense) return amx && onednn_major < 3 && p.in.h == 1 && p.in.w == 1;
  if (!c.is_plain() || c.kernel_h != 1 || c.kernel_w != 1 || c.groups != 1) return false;
  if (c.pad_h != 0 || c.pad_w != 0) return false;
  if (amx) return onednn_major < 3 || is_strided(p);
  return p.dtype == DType::float32 && cpu.has_avx512 && onednn_major < 3 && has_tokens(p);
}

bool has_tokens(const Product& p) {
  const nn::Convolution& c = p.convolution;
  if (is_strided(p) || c.pad_h != 0 || c.pad_w != 0) return false;
  return (p.in.h == 1 || p.in.w == 1) && p.out == nn::Shape{p.out.c, p.in.h, p.in.w};
}

bool is_strided(const Product& p) { return !p.dense && (p.convolution.stride_h != 1 || p.convolution.stride_w != 1); }

void gather_pixels(const Product& p, int count, const void* all, void* used) {
  const std::size_t bytes = pixel_bytes(p);
  each_used_pixel(p, count, [&](std::int64_t from, std::int64_t to) {
    std::memcpy(static_cast<std::byte*>(used) + offset(to, bytes),
                static_cast<const std::byte*>(all) + offset(from, bytes), bytes);
  });
}

void scatter_pixels(const Product& p, int count, const void* used, void* all) {
  const std::size_t bytes = pixel_bytes(p);
  std::memset(all, 0, offset(std::int64_t{count} * p.in.h * p.in.w, bytes));
  each_used_pixel(p, count, [&](std::int64_t to, std::int64_t from) {
    std::memcpy(static_cast<std::byte*>(all) + offset(to, bytes),
                static_cast<const std::byte*>(used) + offset(from, bytes), bytes);
  });
}

}  // namespace dtrain::backend::cpu
