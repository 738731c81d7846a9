// The camera as a way to bring a picture.

import { html, useLayoutEffect, useRef, useState } from '../kit/preact.js';
/** @import { Bringer } from './upload.js' */

/** Opens the camera, and takes a picture of what it sees; children: what else brings one. @param {{bringer: Bringer, children: any}} props */
export function Camera({ bringer, children }) {
  const [stream, setStream] = useState(/** @type {MediaStream | null} */ (null));
  const screen = useRef(/** @type {any} */ (null));
  const button = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => {
    const video = screen.current;
    if (!stream) return;
    video.srcObject = stream;
    const focus = () => button.current.focus();
    video.play().then(focus, focus); // the page may have been left meanwhile
    return () => {
      stream.getTracks().forEach((track) => track.stop());
      video.srcObject = null;
    };
  }, [stream]);
  const open = async () => {
    try {
      if (!navigator.mediaDevices) throw new DOMException('', 'NotSupportedError'); // a page that is not served by https
      setStream(await navigator.mediaDevices.getUserMedia({ video: true }));
    } catch (error) {
      bringer.say(cameraWords(/** @type {DOMException} */ (error).name));
    }
  };
  const take = () => {
    const video = screen.current;
    if (!video.videoWidth) return; // it has shown nothing yet
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
    canvas.getContext('2d')?.drawImage(video, 0, 0);
    setStream(null);
    canvas.toBlob((blob) => {
      if (blob) void bringer.bring([new File([blob], '', { type: 'image/png' })]);
    }, 'image/png');
  };
  return html`<div class="vv-row">
      <button
        type="button"
        class="vv-button vv-camera-open"
        title="Takes a picture with this machine's camera."
        hidden=${Boolean(stream)}
        onClick=${open}
      >
        Use the camera
      </button>
      ${children}
    </div>
    <div class="vv-camera vv-stack" hidden=${!stream}>
      <video
        class="vv-camera-picture"
        playsinline
        muted
        aria-label="What the camera sees"
        ref=${screen}
      ></video>
      <div class="vv-row">
        <button
          type="button"
          class="vv-button vv-camera-take"
          title="Takes the picture that the camera sees now."
          ref=${button}
          onClick=${take}
        >
          Take the picture
        </button>
        <button
          type="button"
          class="vv-button vv-camera-close"
          title="Lets the camera go."
          onClick=${() => setStream(null)}
        >
          Close the camera
        </button>
      </div>
    </div>`;
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
