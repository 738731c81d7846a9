// The camera as a way to bring a picture.

/** @import { Bringer } from './upload.js' */

/**
 * Lets a button open the camera, and another one take the picture.
 * @param {(name: string) => HTMLElement} find @param {Bringer} bringer
 */
export function listenToCamera(find, bringer) {
  const video = /** @type {HTMLVideoElement} */ (find('camera-picture'));
  /** @type {MediaStream | null} */
  let stream = null;
  const close = () => {
    stream?.getTracks().forEach((track) => track.stop());
    stream = null;
    video.srcObject = null;
    find('camera').hidden = true;
    find('camera-open').hidden = false;
  };
  find('camera-open').addEventListener('click', async () => {
    try {
      if (!navigator.mediaDevices) throw new DOMException('', 'NotSupportedError'); // a page that is not served by https
      stream = await navigator.mediaDevices.getUserMedia({ video: true });
    } catch (error) {
      return bringer.say(cameraWords(/** @type {DOMException} */ (error).name));
    }
    if (!find('camera').isConnected) return close();
    find('camera').hidden = false;
    find('camera-open').hidden = true;
    video.srcObject = stream;
    await video.play().catch(() => {}); // the page may have been left meanwhile
    find('camera-take').focus();
  });
  find('camera-take').addEventListener('click', () => {
    if (!video.videoWidth) return; // it has shown nothing yet
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
    canvas.getContext('2d')?.drawImage(video, 0, 0);
    close();
    canvas.toBlob((blob) => {
      if (blob) void bringer.bring([new File([blob], '', { type: 'image/png' })]);
    }, 'image/png');
  });
  find('camera-close').addEventListener('click', close);
}

/** Why the camera cannot be used, from the name of the browser's error. */
export function cameraWords(/** @type {string} */ name) {
  if (name === 'NotAllowedError')
    return 'The browser does not let this page use the camera; allow it beside the address, and try again.';
  if (name === 'NotFoundError') return 'This machine has no camera; choose a file instead.';
  if (name === 'NotSupportedError')
    return 'Browsers lend the camera to pages that are served by https or from this machine only; choose a file instead.';
  return 'The camera cannot be used now, perhaps because something else uses it; choose a file instead.';
}
