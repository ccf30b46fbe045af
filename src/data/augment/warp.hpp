// A decoded image seen through warp and padding, without building either: any pixel of the padded canvas on demand.
#pragma once

#include <optional>

#include "augment_draws.hpp"

namespace dtrain::data {

// Where a canvas pixel lies in the image: x' = xx*x + xy*y + x0, likewise y'. Inverse of MXNet's matrix for warpAffine.
struct Affine {
  int h = 0, w = 0;  // of the warped image
  double xx = 1, xy = 0, x0 = 0;
  double yx = 0, yy = 1, y0 = 0;
};

bool warps(const Augment& options);
// nullopt when no warping option is on.
std::optional<Affine> draw_affine(const Image& image, const Augment& options, const Draws& draws);

// Image, warped by bilinear interpolation if `affine`, then padded. Channel values are whole numbers 0..255. Borrows
// the image.
class Canvas {
 public:
  Canvas(const Image& image, const Augment& options, std::optional<Affine> affine);
  int h() const { return h_; }
  int w() const { return w_; }
  // Coordinates inside the canvas; writes image.c values.
  void pixel(int y, int x, float* values) const;
  void draw(Image& out) const;  // all of it, reusing the memory of `out`

 private:
  void warped(int y, int x, float* values) const;
  void original(int y, int x, float* values) const;  // fill_value outside the image

  const Image& image_;
  const std::optional<Affine> affine_;
  float fill_;
  bool reflect_;
  int pad_, h_, w_;
};

// The canvas resized to h x w (bilinear, pixel centres at halves) when that is larger than the canvas.
void resized_pixel(const Canvas& canvas, int channels, int h, int w, int y, int x, float* values);

}  // namespace dtrain::data
